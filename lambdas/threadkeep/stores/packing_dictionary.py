"""What deflate is told before it packs a body: the frame of its JSON, and the words that most texts have in common.

A message is too short for deflate to learn them from. What bodies take of their JSON, by plain zlib, in format 1 (with
2 KB of single words) and now, measured 2026-11-29 on 380 messages of 32 conversations from AlpacaEval and MT-Bench that
were not counted (`packing_words`):

==================  =====  ========  =====
bytes of text       plain  format 1  now
==================  =====  ========  =====
under 400           0.74   0.46      0.39
400 to 1,000        0.54   0.44      0.40
1,000 to 2,500      0.47   0.41      0.37
3,800 to 4,400      0.42   0.38      0.34
==================  =====  ========  =====

Code takes 4 % less than in format 1; ten texts of 200 to 300 bytes in seven other languages of Latin letters take 1 %
less together, and none of them over 2 % more; other scripts and emoji take the same. To pack a body takes about 15 us
(72 bytes), 50 us (1,500) and 200 us (4,400), to unpack it 2 to 10 us; in format 1 it was 10, 30, 60 and the same.

It is part of the format: what was packed with it is read with it, so it never changes, and another dictionary is
another format. With what the tail adds it stays below what deflate can look back on (32 KiB).
"""

from __future__ import annotations

from typing import Final

from threadkeep.stores.packing_words import WORDS

_OTHER_LANGUAGES: Final = (
    " sono della che non per con una del il di è nous vous dans pour pas qui sur avec est une des les que la le et du"
    " como más para por una con los las del que el en y un não uma com os as do da em são o een van niet voor zijn dat"
    " werden oder aus nach bei wie auch sich für auf mit ist nicht ein eine den das die der und zu ich"
)
"""The commonest words of some, near the end: else English words that begin alike are found far away, at some cost."""
_JSON: Final = (
    r'"},{"type":"reasoning","text":"\n\n```\n\n| --- |"},{"type":"tool_result","call_id":"call_","output":"{\"}],'
    r'"usage":{"input_tokens":,"output_tokens":}}{"metadata":{},"parts":[{"type":"tool_call","call_id":"call_","name":"'
    r'","arguments":"{\"","state":"complete"}\n\n### \n- **:** \n\n1. **.\n   - "}]}'
    r'{"metadata":{},"parts":[{"type":"text","text":"'
)
"""As `threadkeep.stores.packing.Body` is written, with the parts of docs/protocol.md, section 3.2."""

DICTIONARY: Final = (WORDS + _OTHER_LANGUAGES + _JSON).encode()
