"""Expressions typed in experiments: names, numbers, + - * / and named functions, nothing else."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.errors import ValueProblem, suggest

MAX_LENGTH = 500
Lookup = Callable[[str], Any]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True)
class Expression:
    """A checked expression: its text, its tree and the names it uses."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]

    def evaluate(self, lookup: Lookup, functions: Mapping[str, Callable[..., Any]]) -> Any:
        """The value, with names looked up; raises ValueProblem where it has none."""
        try:
            return _evaluate(self.tree, lookup, functions)
        except ValueProblem as error:
            error.text = error.text or self.text
            raise
        except ZeroDivisionError:
            raise ValueProblem(f"'{self.text}' divides by zero") from None
        except OverflowError:
            raise ValueProblem(f"'{self.text}' is larger than any number kvplan holds") from None
        except RecursionError:
            raise ValueProblem(
                f"'{self.text}' rests on too many steps, each derived from the next",
                "",
                "derive it from quantities",
            ) from None
        except (TypeError, ValueError):
            raise ValueProblem(f"'{self.text}' mixes what cannot be computed together") from None


def parse_expression(text: str, functions: Mapping[str, Any]) -> Expression:
    """An expression checked against the whitelist; errors carry the offset in the text."""
    if len(text) > MAX_LENGTH:
        raise ValueProblem(
            f"the expression has more than {MAX_LENGTH} characters",
            "",
            "name a part of it under 'values'",
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        fault = ValueProblem(
            f"'{text.strip()}' is not an expression",
            "",
            "use names, numbers, + - * / and ( )",
            max(0, min((getattr(error, "offset", None) or 1), len(text.strip())) - 1),
        )
        fault.text = text.strip()
        raise fault from None
    names: list[str] = []
    try:
        _check(tree, functions, names)
    except ValueProblem as error:
        error.text = text.strip()
        raise
    except RecursionError:
        raise ValueProblem("the expression is nested too deep", "", "name a part of it") from None
    return Expression(text.strip(), tree, tuple(dict.fromkeys(names)))


def _check(node: ast.expr, functions: Mapping[str, Any], names: list[str]) -> None:
    if isinstance(node, ast.Constant):
        _check_constant(node)
    elif isinstance(node, ast.Name):
        names.append(node.id)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        _check_power(node)
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        _check(node.left, functions, names)
        _check(node.right, functions, names)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, functions, names)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        _check(node.left, functions, names)
        _check(node.comparators[0], functions, names)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in functions:
            raise ValueProblem(
                f"unknown function '{node.func.id}'",
                "",
                suggest(node.func.id, functions) or "functions: " + ", ".join(sorted(functions)),
                node.col_offset,
            )
        for argument in node.args:
            _check(argument, functions, names)
    else:
        raise ValueProblem(
            f"'{ast.unparse(node)}' is not allowed in an expression",
            "expressions come from files under review and may not run code",
            "use names, numbers, + - * / < > and functions",
            node.col_offset,
        )


def _check_constant(node: ast.Constant) -> None:
    if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
        raise ValueProblem(f"{node.value!r} is not a number", "", "", node.col_offset)
    if isinstance(node.value, int) and abs(node.value) >= 2**64 or not math.isfinite(node.value):
        raise ValueProblem("the number is too large", "", "", node.col_offset)


def _check_power(node: ast.BinOp) -> None:
    left, right = node.left, node.right
    if not (
        isinstance(left, ast.Constant)
        and left.value in (2, 10)
        and isinstance(right, ast.Constant)
        and isinstance(right.value, int)
        and 0 <= right.value <= 63
    ):
        raise ValueProblem(
            "only 2**n and 10**n with n up to 63 may be raised to a power",
            "",
            "write a product",
            node.col_offset,
        )


def _evaluate(node: ast.expr, lookup: Lookup, functions: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        try:
            return lookup(node.id)
        except ValueProblem as error:
            if error.offset is None:
                error.offset, error.width = node.col_offset, len(node.id)
            raise
    if isinstance(node, ast.UnaryOp):
        return -_evaluate(node.operand, lookup, functions)
    if isinstance(node, ast.BinOp):
        left = _evaluate(node.left, lookup, functions)
        right = _evaluate(node.right, lookup, functions)
        if isinstance(node.op, ast.Pow):
            return left**right
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Compare):
        left = _evaluate(node.left, lookup, functions)
        return _COMPARE[type(node.ops[0])](left, _evaluate(node.comparators[0], lookup, functions))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    arguments = [_evaluate(argument, lookup, functions) for argument in node.args]
    try:
        return functions[node.func.id](*arguments)
    except (TypeError, ValueError, AttributeError, IndexError):
        raise ValueProblem(
            f"'{node.func.id}' cannot be called with these arguments",
            "",
            "see 'kvplan list functions'",
            node.col_offset,
        ) from None
