"""Programs of our own making in the shapes that public scripts have, and the plan of each."""

from pathlib import Path
from textwrap import dedent

import pytest

from calculator.__main__ import main
from calculator.doors.call import read_calls
from calculator.doors.file import parse_file
from calculator.doors.formats import read
from calculator.doors.names import BY_CARD, COMPUTED
from calculator.doors.settle import settle
from tests.calculator.plans import options_of

CONSTANTS = """
    MODEL = "Qwen/Qwen3-0.6B"
    BATCH, LENGTH = 2, 512 * 2
    bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                             bnb_4bit_use_double_quant=True)
    model = AutoModelForCausalLM.from_pretrained(MODEL, quantization_config=bnb)
    model = prepare_model_for_kbit_training(model)
    lora = LoraConfig(r=8 * 2, target_modules=["q_proj", "v_proj"])
    arguments = TrainingArguments("out", per_device_train_batch_size=BATCH, bf16=True,
                                  gradient_accumulation_steps=16 // BATCH)
    SFTTrainer(model=model, args=arguments, peft_config=lora, max_seq_length=LENGTH).train()
"""
PARSED = """
    def parse():
        parser = argparse.ArgumentParser()
        parser.add_argument("--model-name", default="Qwen/Qwen3-0.6B")
        parser.add_argument("--batch-size", "-b", type=int, default=4)
        parser.add_argument("--checkpoint", action="store_true")
        return parser.parse_args()

    def train(name, batch, rank=32):
        model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16)
        peft = LoraConfig(r=rank, target_modules="all-linear")
        return SFTConfig(per_device_train_batch_size=batch, max_length=256,
                         gradient_checkpointing=args.checkpoint)

    args = parse()
    train(args.model_name, batch=args.batch_size)
"""
FIELDS = """
    @dataclass
    class ModelArguments:
        model_name_or_path: str = field(default="Qwen/Qwen3-0.6B")

    @dataclass
    class TrainingArguments(transformers.TrainingArguments):
        optim: str = field(default="adamw_torch")
        model_max_length: int = field(default=512, metadata={"help": "Longest sequence."})

    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
"""
UNPACKED = """
    class Settings:
        base = "Qwen/Qwen3-0.6B"
        tokens = 128

    common = dict(output_dir="out", per_device_train_batch_size=2)
    common["optim"] = "paged_adamw_8bit"
    more = {"bf16": is_bfloat16_supported(), "fp16": not is_bfloat16_supported(), **common}
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(Settings.base)
    batch = tokenizer(texts, truncation=True, max_length=Settings.tokens)
    model = AutoModelForCausalLM.from_pretrained(Settings.base, torch_dtype=dtype)
    args = TrainingArguments(gradient_checkpointing=device == "cuda", **more)
"""
UNSLOTH = """
    max_seq_length = 2048
    model, tokenizer = FastLanguageModel.from_pretrained(
        model_name="unsloth/Qwen3-0.6B", max_seq_length=max_seq_length, load_in_4bit=True)
    model = FastLanguageModel.get_peft_model(
        model, r=16, target_modules=["q_proj", "v_proj"], lora_alpha=16, random_state=3407,
        use_gradient_checkpointing="unsloth")
    trainer = SFTTrainer(model=model, args=SFTConfig(
        per_device_train_batch_size=2, optim="adamw_8bit", seed=3407))
"""
RECORDINGS = """
    model = AutoModelForAudioClassification.from_pretrained("openai/whisper-tiny", num_labels=12)
    args = TrainingArguments(per_device_train_batch_size=8)
"""
PAIRS = """
    model = SentenceTransformer("google-bert/bert-base-uncased")
    args = SentenceTransformerTrainingArguments(per_device_train_batch_size=256)
    loss = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=16)
"""
LOOP = """
    settings = {"batch": 16, "lengths": [64, 128]}
    model = AutoModelForSequenceClassification.from_pretrained(
        os.environ.get("BASE", "bert-base-uncased"), num_labels=len(labels))
    peft = LoraConfig(r=int(os.getenv("RANK", "4")), target_modules=find_all_linear_names(model))
    rows = tokenizer(texts, max_length=settings["lengths"][-1])
    loader = DataLoader(rows, batch_size=settings.get("batch", 8))
"""
PLANS = {
    CONSTANTS: "model=Qwen/Qwen3-0.6B batch_size=2 sequence_length=1024 accumulation=8 "
    "precision=amp checkpointing=full lora=16 lora_targets=q_proj,v_proj quantization=nf4-double",
    PARSED: "model=Qwen/Qwen3-0.6B batch_size=4 sequence_length=256 precision=half "
    "checkpointing=none lora=32 lora_targets=all-linear",
    FIELDS: "model=Qwen/Qwen3-0.6B batch_size=8 sequence_length=512 precision=fp32",
    UNPACKED: "model=Qwen/Qwen3-0.6B batch_size=2 sequence_length=128 precision=half "
    "checkpointing=full optimizer_bits=8 paged_optimizer=True",
    UNSLOTH: "model=unsloth/Qwen3-0.6B batch_size=2 sequence_length=2048 checkpointing=full "
    "lora=16 quantization=nf4 optimizer_bits=8",
    RECORDINGS: "model=openai/whisper-tiny batch_size=8 task=audio labels=12",
    PAIRS: "model=google-bert/bert-base-uncased batch_size=512 task=embedding mini_batch_size=16",
    LOOP: "model=bert-base-uncased batch_size=16 sequence_length=128 task=sequence lora=4 "
    "lora_targets=all-linear",
}


@pytest.mark.parametrize("text", PLANS, ids=lambda text: text.split()[0])
def test_a_program_s_plan_is_read_from_its_text(text: str) -> None:
    run = settle([read(parse_file("train.py", dedent(text)))], {})
    wanted = options_of(PLANS[text])
    found = {"model": run.model, **run.options}
    assert {name: str(found.get(name)) for name in wanted} == wanted
    assert [note.key for note in run.notes if note.way == "either"] == []


def test_a_format_that_the_card_decides_is_left_to_the_card() -> None:
    run = settle([read(parse_file("train.py", dedent(UNPACKED)))], {})
    assert "format" not in run.options
    assert read_calls("SFTConfig(bf16=torch.cuda.is_bf16_supported())")["bf16"] == BY_CARD


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("load(path)['batch']", COMPUTED),
        ("rank if rank > 1 else rank", COMPUTED),
        ("1 / 0", COMPUTED),
        ("'8' * 100_000", COMPUTED),
        ("batch", COMPUTED),  # given by itself alone
        ("None or 4", 4),
        ("int(os.environ.get('WORLD_SIZE', 1)) != 1", False),
        ("f'{2}-{3}'", "2-3"),
        ("getattr(args, 'batch', 6)", 6),
        ("'a,b'.split(',')", ["a", "b"]),
    ],
)
def test_an_expression_has_the_value_that_the_text_gives(expression: str, value: object) -> None:
    text = f"batch = batch + 1\nTrainingArguments(per_device_train_batch_size={expression})"
    assert read_calls(text)["per_device_train_batch_size"] == value


def test_a_model_that_the_command_line_names_has_to_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text("p.add_argument('--model')\nAutoModel.from_pretrained(args.model)\nSFTConfig()")
    assert main(["check", str(file)]) == 2
    assert "give --model" in capsys.readouterr().out
    assert main(["check", str(file), "--model", "gpt2-s"]) in (0, 1)
