"""The table of kernels: complete for the tape, true to the counting GPU, and checked by `audit`."""

import ast
import re
from pathlib import Path

import calculator
from calculator.autograd import operations, selection
from validation.audit import NATIVE, audit, kernels, scratch_rules

SCRATCH = Path(__file__).parents[2] / "validation" / "scratch.h"
# made of other operations, or views: no kernel of their own
COMPOSED = {"gelu_new", "dropout", "widened", "summed_back"}
VIEWS = {"view", "transpose", "split", "part", "expand", "regrouped", "reduced", "reduced_back"}


def test_every_operation_of_the_tape_is_in_the_table_whose_names_are_the_calculators() -> None:
    trees = [ast.parse(Path(module.__file__).read_text()) for module in (operations, selection)]
    nodes = [node for tree in trees for node in tree.body]
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    recording = {name for name in defined if not name.startswith("_")} - {"factors"}
    named = {name for kernel in kernels() for name in kernel.tape}
    assert recording - named <= VIEWS | COMPOSED
    text = "".join(path.read_text() for path in Path(calculator.__file__).parent.rglob("*.py"))
    assert named <= set(re.findall(r"^\s*(?:def|class) (\w+)", text, re.MULTILINE))


def test_each_allocation_has_a_rule_in_the_counting_gpu() -> None:
    rules = set(re.findall(r"^Stages (\w+)\(", SCRATCH.read_text(), re.MULTILINE))
    assert set(scratch_rules().values()) == rules


def test_an_allocation_that_the_table_does_not_name_is_listed(tmp_path: Path) -> None:
    source = tmp_path / NATIVE / "cuda/SoftMax.cu"
    source.parent.mkdir(parents=True)
    source.write_text(
        "TORCH_IMPL_FUNC(softmax_backward_cuda_out)\n"
        "(const Tensor& grad) {\n"
        "  Tensor tmp = grad * output;  // at::zeros in words\n"
        "  // auto gone = at::empty_like(grad);\n"
        "  auto more = at::empty_like(grad);\n"
        "}\n"
        "void host_softmax_backward(int n);\n"
        "void host_softmax_backward(int n) { auto grad = grad_.contiguous(); }\n"
        "Tensor elsewhere() { return at::zeros({1}); }\n"
    )
    lines = [*audit(tmp_path)]
    assert [line for line in lines if "not found" not in line] == [
        "cuda/SoftMax.cu:5: softmax_backward_cuda_out: auto more = at::empty_like(grad);"
    ]
    assert "cuda/SoftMax.cu: host_softmax not found" in lines
    assert "cuda/Embedding.cu: not found" in lines
