"""What the planner reports: groups, refusals, the plan, and GiB as the engine prints them."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.arithmetic import GIB
from kvplan.engines.vllm.groups import Padding


@dataclass(frozen=True)
class GroupPlan:
    """One group as the planner reports it: layers, tokens a block, bytes, blocks of one request."""

    kind: str
    layers: int
    block_size: int
    page_bytes: int
    blocks_per_request: int


@dataclass(frozen=True)
class Refusal:
    """Why the engine does not start; bytes where the engine names them."""

    kind: str
    type: str
    needed_bytes: int | None = None
    available_bytes: int | None = None
    estimated_max_model_len: int | None = None
    message: str = ""


@dataclass(frozen=True)
class Plan:
    """What the start-up planning decides, or why it refuses.

    `num_gpu_blocks` counts the null block, which is never handed out. `printed_tokens` is the
    figure of the log line in the release's own meaning: block tokens (0.6, 0.8), an equal share of
    the block ids for each group (0.11, 0.20), or concurrency times max_model_len (0.33).
    Groups and needs are for the length asked for; after auto-fit the log lines are for the fitted.
    """

    version: str
    outcome: str
    layers_by_stage: tuple[int, ...]
    max_model_len: int
    groups: tuple[GroupPlan, ...] = ()
    padding: tuple[Padding, ...] = ()
    bytes_per_block_by_stage: tuple[int, ...] = ()
    needed_bytes_by_stage: tuple[int, ...] = ()
    blocks_per_request: int = 0
    num_gpu_blocks: int | None = None
    printed_tokens: int | None = None
    max_concurrency: float | None = None
    printed_by_rank: tuple[tuple[int, float], ...] = ()
    attention_block_size: int | None = None
    state_page_padded: int | None = None
    fitted_max_model_len: int | None = None
    error: Refusal | None = None

    @property
    def fits(self) -> bool:
        """Whether the engine starts with these arguments."""
        return self.outcome == "ok"

    @property
    def usable_blocks(self) -> int:
        """Blocks that can be handed out: block 0 stands in for freed window blocks."""
        return max((self.num_gpu_blocks or 1) - 1, 0)


def gib_text(amount: int, rounds: bool) -> str:
    """Bytes as the engine prints GiB: rounded to a float (0.20 on) or with two decimals."""
    return f"{round(amount / GIB, 2)}" if rounds else f"{amount / GIB:.2f}"
