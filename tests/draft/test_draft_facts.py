"""What names of folders and a config.json tell of a series: which number is the step, which loss it was trained by."""

import pytest

from isotrace.draft.facts import Loss, loss_of
from isotrace.draft.folder import pattern_of


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["checkpoint-500", "checkpoint-1000", "runs"], "checkpoint-{step}"),
        (["seed1-step10", "seed1-step20"], "seed1-step{step}"),
        (["step10-tokens2B", "step20-tokens2B"], "step{step}-tokens2B"),
        (["iter_0010", "iter_0020", "final1"], "iter_{step}"),
        (["0", "10"], "{step}"),
        (["1k", "2.5k"], "{step}"),
        (["final", "best"], None),
    ],
)
def test_the_step_is_the_number_that_most_names_share_a_place_for(names, pattern):
    assert pattern_of(names) == pattern


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, ("clm", "text")),
        ({"architectures": ["GPT2LMHeadModel"]}, ("clm", "text")),
        ({"architectures": ["BertForPreTraining"]}, ("mlm", "text")),
        ({"architectures": ["T5ForConditionalGeneration"], "model_type": "t5"}, ("mlm", "text")),
        ({"architectures": ["ViTModel"], "model_type": "vit"}, ("none", "image")),
        ({"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper"}, ("none", "audio")),
        ({"architectures": ["NovelModel"]}, None),
        ({}, None),
    ],
    ids=str,
)
def test_what_a_config_json_tells_of_the_loss(config, found):
    loss = loss_of(config)
    assert (None if loss is None else (loss.objective, loss.modality)) == found


def test_a_byte_tokenizer_makes_a_t5_read_bytes():
    found = loss_of({"model_type": "t5"}, {"tokenizer_class": "ByT5Tokenizer"})
    assert isinstance(found, Loss)
    assert (found.objective, found.modality) == ("mlm", "bytes")
