"""The values that a Python file gives its names, its arguments and its fields; nothing is run."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

COMPUTED: Final = "(computed)"
# a choice that the program makes by what the card can do
BY_CARD: Final = "(by card)"
# questions to the card, whose answer decides between formats
_CARD: Final = ("bf16_supported", "bfloat16_supported", "get_device_capability", "bf16_gpu")
# questions that every run on one GPU answers alike
_PLAIN: Final = {"is_available": True, "device_count": 1}
_OPERATORS: Final[Mapping[type, Callable[[Any, Any], object]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_CONVERSIONS: Final[Mapping[str, Callable[[Any], object]]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "max": max,
    "min": min,
}
# defaults of the libraries' own arguments, in a program that takes them from its command line
_PARSED: Final[Mapping[str, object]] = {
    ".per_device_train_batch_size": 8,
    ".gradient_accumulation_steps": 1,
    ".gradient_checkpointing": False,
    ".bf16": False,
    ".fp16": False,
    ".dtype": None,
    ".torch_dtype": None,
    ".attn_implementation": None,
    ".load_in_4bit": False,
    ".lora_r": 16,
    ".lora_dropout": 0.05,
    ".lora_target_modules": None,
}
PARSERS: Final = ("HfArgumentParser", "TrlParser")
LONGEST: Final = 10_000
Open = tuple[str, ...]


class Names:
    """All names of a file with the expressions that they are given, the last one first.

    Fields and arguments of the program's own have a dot before them.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.given: dict[str, list[ast.expr]] = {}
        self.keys: dict[str, dict[object, ast.expr]] = {}
        called = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        self.is_parsed = any(name.endswith(PARSERS) for name in called)
        functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        for node in ast.walk(tree):
            for name, value in (*_bound(node), *_passed(node, functions)):
                self.given.setdefault(name, []).insert(0, value)
            match node:
                case ast.Assign(
                    targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key))],
                    value=value,
                ):
                    self.keys.setdefault(name, {})[key] = value

    def field(self, name: str) -> object:
        """The value of a field or an argument."""
        return self._named(f".{name}", ())

    def keywords(self, call: ast.Call, open_: Open = ()) -> dict[str, object]:
        """The arguments of a call by name, with those of a dictionary that is unpacked."""
        found: dict[str, object] = {}
        for item in call.keywords:
            value = self.value(item.value, open_)
            if item.arg is not None:
                found[item.arg] = value
            elif isinstance(value, dict):
                found |= {str(key): it for key, it in value.items()}
        return found

    def value(self, node: ast.expr, open_: Open = ()) -> object:
        """The value of an expression; `open_` are names that are being looked up."""
        try:
            return self._value(node, open_)
        except (ValueError, TypeError, ArithmeticError, KeyError, IndexError, RecursionError):
            return COMPUTED

    def _value(self, node: ast.expr, open_: Open) -> object:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name(id=name):
                return self._named(name, open_)
            case ast.Attribute(attr=attribute, value=owner):
                is_torch = isinstance(owner, ast.Name) and owner.id == "torch"
                return attribute if is_torch else self._named(f".{attribute}", open_)
            case ast.IfExp():
                return self._choice(node, open_)
            case ast.Subscript():
                return self._part(node.value, self.value(node.slice, open_), open_)
            case ast.Call():
                return self._called(node, open_)
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.JoinedStr():
                return self._collected(node, open_)
        return self._computed(node, open_)

    def _computed(self, node: ast.expr, open_: Open) -> object:
        """The value of an expression with operators."""
        match node:
            case ast.FormattedValue():
                return self.value(node.value, open_)
            case ast.BoolOp(op=op, values=nodes):
                return self._either(isinstance(op, ast.Or), nodes, open_)
            case ast.UnaryOp(op=ast.Not() | ast.USub() as sign, operand=operand):
                value: Any = self.value(operand, open_)
                if value in (COMPUTED, BY_CARD):
                    return value
                return not value if isinstance(sign, ast.Not) else -value
            case ast.BinOp(left=left, op=op, right=right):
                return self._combined(op, left, right, open_)
            case ast.Compare(left=left, ops=[comparison], comparators=[right]):
                return self._combined(comparison, left, right, open_)
        return COMPUTED

    def _collected(
        self, node: ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr, open_: Open
    ) -> object:
        if isinstance(node, ast.Dict):
            return self._dictionary(node, open_)
        items = node.values if isinstance(node, ast.JoinedStr) else node.elts
        values = [self.value(item, open_) for item in items]
        if COMPUTED in values:
            return COMPUTED
        return "".join(map(str, values)) if isinstance(node, ast.JoinedStr) else values

    def _named(self, name: str, open_: Open) -> object:
        """The last value of a name that is known; one that is being looked up has none."""
        if name in open_:
            return COMPUTED
        values = (self.value(node, (*open_, name)) for node in self.given.get(name, ()))
        usual = _PARSED.get(name, COMPUTED) if self.is_parsed else COMPUTED
        found = next((value for value in values if value != COMPUTED), usual)
        if isinstance(found, dict) and name in self.keys:
            more = {key: self.value(it, (*open_, name)) for key, it in self.keys[name].items()}
            found = {**found, **more}
        return found

    def _dictionary(self, node: ast.Dict, open_: Open) -> dict[object, object]:
        found: dict[object, object] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, open_)
            if key is not None:
                found[self.value(key, open_)] = value
            elif isinstance(value, dict):
                found |= value
        return found

    def _choice(self, node: ast.IfExp, open_: Open) -> object:
        asked, body, otherwise = self.value(node.test, open_), node.body, node.orelse
        if asked not in (COMPUTED, BY_CARD):
            return self.value(body if asked else otherwise, open_)
        both = [self.value(one, open_) for one in (body, otherwise)]
        if both[0] == both[1]:
            return both[0]
        return BY_CARD if asked == BY_CARD else COMPUTED

    def _either(self, is_or: bool, nodes: list[ast.expr], open_: Open) -> object:
        value: object = COMPUTED
        for node in nodes:
            value = self.value(node, open_)
            if value == COMPUTED or (value != BY_CARD and bool(value) is is_or):
                return value
        return value

    def _combined(
        self, op: ast.operator | ast.cmpop, left: ast.expr, right: ast.expr, open_: Open
    ) -> object:
        both = [self.value(one, open_) for one in (left, right)]
        if BY_CARD in both:
            return BY_CARD
        if COMPUTED in both or type(op) not in _OPERATORS:
            return COMPUTED
        found = _OPERATORS[type(op)](*both)
        return COMPUTED if isinstance(found, str | list) and len(found) > LONGEST else found

    def _part(self, inner: ast.expr, key: object, open_: Open) -> object:
        whole = self.value(inner, open_)
        if whole == BY_CARD:
            return BY_CARD
        if isinstance(whole, dict):
            return whole.get(key, COMPUTED)
        if isinstance(whole, list) and isinstance(key, int):
            return whole[key]
        return COMPUTED

    def _called(self, node: ast.Call, open_: Open) -> object:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if any(part in name for part in _CARD):
            return BY_CARD
        if name in _PLAIN:
            return _PLAIN[name]
        arguments = [self.value(one, open_) for one in node.args]
        if name in ("get", "getenv", "getattr", "pop"):
            return self._looked_up(node, name, arguments, open_)
        if name == "dict":
            first = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
            return {**first, **self.keywords(node, open_)}
        if name in _CONVERSIONS and arguments:
            return (
                BY_CARD
                if BY_CARD in arguments
                else (COMPUTED if COMPUTED in arguments else _CONVERSIONS[name](*arguments))
            )
        if name == "split" and isinstance(node.func, ast.Attribute):
            whole = self.value(node.func.value, open_)
            if isinstance(whole, str) and whole != COMPUTED:
                return whole.split(str(arguments[0]) if arguments else None)
        return "all-linear" if "linear" in name else COMPUTED

    def _looked_up(self, node: ast.Call, name: str, arguments: list[object], open_: Open) -> object:
        """A key of a dictionary or a field, with the default where its value is not in the file."""
        if name == "getattr":
            if isinstance(node.args[0], ast.Name) and node.args[0].id == "torch":
                return arguments[1]
            key, default = (*arguments[1:], COMPUTED, COMPUTED)[:2]
            found = self._named(f".{key}", open_)
        else:
            key, default = (*arguments, COMPUTED, None if name == "get" else COMPUTED)[:2]
            inner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            whole = self.value(inner, open_)
            if name != "getenv" and not isinstance(whole, dict) and len(arguments) < 2:
                return COMPUTED
            found = whole.get(key, COMPUTED) if isinstance(whole, dict) else COMPUTED
        return default if found == COMPUTED else found


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement gives a value, or that have a default."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _targets(target, _default(value))
        case ast.FunctionDef(args=arguments):
            yield from _parameters(arguments)
        case ast.Call(func=ast.Attribute(attr="add_argument"), args=flags, keywords=items):
            yield from _argument(flags, {item.arg: item.value for item in items})


def _default(value: ast.expr) -> ast.expr:
    """The default of a dataclass' field, or the value itself."""
    match value:
        case ast.Call(func=ast.Name(id="field") | ast.Attribute(attr="field"), keywords=items):
            for item in items:
                if item.arg == "default":
                    return item.value
                if item.arg == "default_factory" and isinstance(item.value, ast.Lambda):
                    return item.value.body
    return value


def _parameters(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Parameters of a function with their defaults."""
    named = [*arguments.posonlyargs, *arguments.args]
    with_default = named[len(named) - len(arguments.defaults) :]
    for one, default in zip(with_default, arguments.defaults, strict=True):
        yield one.arg, default
    for one, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if given is not None:
            yield one.arg, given


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
            yield f".{name}", value
        case ast.Attribute(attr=name), _:
            yield f".{name}", value
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for one, its in zip(names, values, strict=True):
                yield from _targets(one, its)


def _argument(
    flags: list[ast.expr], given: dict[str | None, ast.expr]
) -> Iterator[tuple[str, ast.expr]]:
    """An argument of the command line with its default."""
    default = given.get("default")
    match given.get("action"):
        case ast.Constant(value="store_true") if default is None:
            default = ast.Constant(value=False)
        case ast.Constant(value="store_false") if default is None:
            default = ast.Constant(value=True)
    names = [given["dest"]] if "dest" in given else flags
    for flag in names:
        if default is not None and isinstance(flag, ast.Constant):
            yield f".{str(flag.value).lstrip('-').replace('-', '_')}", default


def _passed(
    node: ast.AST, functions: Mapping[str, ast.FunctionDef]
) -> Iterator[tuple[str, ast.expr]]:
    """Parameters of the file's own functions with what a call gives them."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=given, keywords=named) if name in functions:
            parameters = [one.arg for one in functions[name].args.args]
            yield from zip(parameters, given, strict=False)
            for item in named:
                if item.arg is not None:
                    yield item.arg, item.value
