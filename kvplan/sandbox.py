"""Jinja templates from strangers' pull requests, run so that they can only print."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import (
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    UndefinedError,
    nodes,
    pass_context,
)
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.runtime import Context, Macro
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from kvplan.errors import KvplanError, Place, Problem, suggest

MAX_OUTPUT = 50_000_000
MAX_SECONDS = 10.0
MAX_TEMPLATE = 1_000_000
_PACKAGED = Path(__file__).parent / "templates"
_CHECKOUT = Path(__file__).parent.parent / "templates"
# Templates lay out; arithmetic belongs to formulas, and grown text or code to nobody.
_FORBIDDEN = (
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Pow,
    nodes.Concat,
    nodes.Slice,
    nodes.AssignBlock,
    nodes.Include,
)
_FILTERS = ("e", "escape", "join", "length")


def _concat(parts: Iterable[str]) -> str:
    """What a macro printed, joined unless that would be too much to hold."""
    return "".join(_limited(iter(parts)))


class _Environment(SandboxedEnvironment):
    concat = staticmethod(_concat)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for node in tree.find_all(_FORBIDDEN):
            raise TemplateSyntaxError(
                f"{type(node).__name__} is not allowed in a template", node.lineno, name, filename
            )
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        # What templates do most, without the detour over everything else an object has.
        if attribute in getattr(type(obj), "__dataclass_fields__", ()):
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if type(obj).__name__ == "LoopContext":
            return attr in ("first", "last", "index")
        return attr in getattr(type(obj), "__dataclass_fields__", ())

    def is_safe_callable(self, obj: Any) -> bool:
        return type(obj).__name__ == "Macro"


@lru_cache(maxsize=8)
def _environment(folders: tuple[str, ...]) -> _Environment:
    from kvplan import markdown

    env = _Environment(
        loader=_Loader(list(folders)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=lambda name: bool(name and ".html" in name),
    )
    env.filters = {name: env.filters[name] for name in _FILTERS}
    env.filters["once"] = _once
    env.filters["equation"] = lambda step: step.equation
    env.filters["md"] = markdown.escape
    env.filters["code"] = markdown.code
    env.filters["address"] = markdown.address
    env.filters["hanging"] = markdown.hanging
    env.filters["html"] = lambda text: Markup(markdown.html_of(str(text)))
    env.filters["html_inside"] = lambda text: Markup(markdown.html_inside(str(text)))
    env.globals = {}
    return env


@pass_context
def _once(context: Context, value: Any, macro: Macro) -> Any:
    """What a macro prints for a record, printed once and kept while this template runs."""
    kept = context["kept"]
    key = (macro.name, id(value))
    if key not in kept:
        kept[key] = macro(value)
    return kept[key]


def template_folders(project: Path) -> list[Path]:
    """The project's own templates first, then those that come with kvplan."""
    shipped = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    return list(dict.fromkeys([project / "templates", shipped]))


def render_template(name: str, project: Path, context: Mapping[str, Any]) -> str:
    """A template's output; every fault is a Problem with the template's file and line."""
    folders = template_folders(project)
    env = _environment(tuple(str(folder) for folder in folders))
    try:
        with _time_limit():
            return "".join(_limited(env.get_template(name).generate(context)))
    except TemplateNotFound as error:
        raise KvplanError(_not_found(error, name, folders)) from None
    except TemplateSyntaxError as error:
        raise KvplanError(
            _problem(error.message or "", error.name or name, error.lineno, folders)
        ) from None
    except (
        UndefinedError,
        SecurityError,
        TemplateRuntimeError,
        TemplateError,
        SyntaxError,
        ArithmeticError,
        LookupError,
        AttributeError,
        RecursionError,
        MemoryError,
        TypeError,
        ValueError,
        _TooMuch,
    ) as error:
        where, line = _frame(error, name)
        what = str(error).replace("Undefined is not safely callable", "only macros can be called")
        raise KvplanError(_problem(what, where, line, folders)) from None


def _not_found(error: TemplateNotFound, name: str, folders: list[Path]) -> Problem:
    known = sorted({f.name for folder in folders for f in folder.glob("*.j2")})
    wanted, (where, line) = str(error.name), _frame(error, name)
    place = Place(f"templates/{name}")
    if wanted != name:
        place = _problem("", where, line, folders).place or place
    why = "templates: " + ", ".join(known)
    return Problem(f"no template '{wanted}'", why, suggest(wanted, known), place)


class _Loader(FileSystemLoader):
    """Templates of a folder; a link that leads out of it is no template."""

    def get_source(self, environment: Any, template: str) -> Any:
        source = super().get_source(environment, template)
        real = Path(source[1]).resolve()
        if not any(real.is_relative_to(Path(root).resolve()) for root in self.searchpath):
            raise TemplateNotFound(template)
        if real.stat().st_size > MAX_TEMPLATE:
            raise TemplateSyntaxError(f"more than {MAX_TEMPLATE:,} bytes", 1, template)
        return source


class _TooMuch(Exception):
    pass


def _limited(chunks: Iterator[str]) -> Iterator[str]:
    length = 0
    for chunk in chunks:
        length += len(chunk)
        if length > MAX_OUTPUT:
            raise _TooMuch(f"the template prints more than {MAX_OUTPUT:,} characters")
        yield chunk


@contextmanager
def _time_limit() -> Iterator[None]:
    """Stops a template that loops on and on; only the main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(signum: int, frame: Any) -> None:
        raise _TooMuch(f"the template runs for more than {MAX_SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _frame(error: BaseException, name: str) -> tuple[str, int]:
    """The template and line an error came from: the last frame that is a template's."""
    found, line = name, 1
    trace = error.__traceback__
    while trace:
        file = trace.tb_frame.f_code.co_filename
        if file.endswith(".j2"):
            found, line = Path(file).name, trace.tb_lineno
        trace = trace.tb_next
    return found, line


def _problem(what: str, name: str, line: int, folders: list[Path]) -> Problem:
    file = next((f / name for f in folders if (f / name).is_file()), None)
    text = ""
    if file:
        content = file.read_text(encoding="utf-8", errors="replace").splitlines()
        text = content[line - 1] if 0 < line <= len(content) else ""
    return Problem(
        f"template error: {what}",
        "",
        "templates print records; they compute nothing",
        Place(f"templates/{name}", line, 1, max(1, len(text)), text),
    )
