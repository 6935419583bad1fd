"""The oracle helpers themselves: searching, caching, and refused words."""

from __future__ import annotations

import pytest

from tests import oracle

PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 7;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""


def test_absent_tool_is_none() -> None:
    assert not oracle.have("no-such-tool-of-ours")
    with pytest.raises(pytest.skip.Exception, match="no-such-tool-of-ours"):
        oracle.require("no-such-tool-of-ours")


def test_word_range() -> None:
    with pytest.raises(ValueError, match="128-bit"):
        oracle.disasm_words([1 << 128], 90)


@pytest.mark.oracle
def test_compile_and_read_back() -> None:
    oracle.require("ptxas", "nvdisasm")
    cubin = oracle.compile_ptx(PTX, 90)
    assert not isinstance(cubin, oracle.ToolError), str(cubin)
    assert oracle.compile_ptx(PTX, "sm_90") == cubin  # cached
    assert "STG" in oracle.nvdisasm(cubin, "-c")
    words = oracle.text_words(cubin, ".text.k")
    texts = oracle.disasm_words(words, 90)
    assert all(texts)
    assert any(text.startswith("STG") for text in texts)


@pytest.mark.oracle
def test_refused_words_keep_their_places() -> None:
    oracle.require("nvdisasm")
    junk = (1 << 128) - 1
    texts = oracle.disasm_words([oracle.NOP_WORD, junk, oracle.NOP_WORD, junk, junk], 80)
    assert texts == ["NOP", oracle.UNDEFINED, "NOP", oracle.UNDEFINED, oracle.UNDEFINED]


@pytest.mark.oracle
def test_error_of_a_bad_file() -> None:
    oracle.require("ptxas")
    error = oracle.compile_ptx(".version 7.0\n.target sm_75\nrubbish\n", 75)
    assert isinstance(error, oracle.ToolError)
    assert error.returncode == 255
    assert "line 3" in error.stderr
