"""What deflate is told before it packs a body: the frame of its JSON, and the words that most texts have in common.

A message is too short for deflate to learn them from. With this dictionary a question of 250 bytes takes 27 % less
than by plain zlib, an answer of 1,500 bytes 14 %, one of 4,000 bytes 10 %, and a text in another language than English
no more than before (measured 2026-11-29 on every other of 65 conversations from AlpacaEval and MT-Bench; the words were
counted in the rest). It is part of the format: what was packed with it is read with it, so it never changes, and
another dictionary is another format.
"""

from __future__ import annotations

from typing import Final

_WORDS: Final = (
    " To Keep uses Start done As allow added What risk doesn Can non cover results group Make here now low form"
    " few already see build too she helps times start note style ground taking widely hour day needs name give"
    " basic free open vary key feel means top get set Some result words voice clean add control When In highly"
    " point offer very made hand food current ability range long own play part AI tasks popular surface always"
    " unique For across methods sure multiple required Use due place daily let enough amount source space those"
    " areas much me others variety history even maintain nature want type role continue way common reduce based"
    " same keep avoid better While must approach heat available certain above check up lead training creating"
    " increase two making safety good area best include another many Additionally materials skills reasons large"
    " individuals down projects effectively her just attention work questions small following values social"
    " interested providing issues because our steps access challenges world personal only They It being Your"
    " involves features example natural health within necessary then take services were both These knowledge"
    " designed my out been how light should than while who new potential human well support prevent requires most"
    " life typically ensure consider improve without any find around first However known if If high number all"
    " over resources complex what its energy Here change several when performance at create environment one each"
    " development various make understanding used especially before during important community content would them"
    " his was system will has could need help where between may process there also information provide often using"
    " experience some people significant such but other specific including time learning might different about by"
    " these into they through This like not water more this be The it on as have which their from are or is can in"
    " your for with that of to and the"
)
"""In at least three of ten conversations each; those that save most stand last, where deflate names them shortest."""
_JSON: Final = (
    r'"},{"type":"reasoning","text":"\n\n```\n\n| --- |"},{"type":"tool_result","call_id":"call_","output":"{\"}],'
    r'"usage":{"input_tokens":,"output_tokens":}}{"metadata":{},"parts":[{"type":"tool_call","call_id":"call_","name":"'
    r'","arguments":"{\"","state":"complete"}\n\n### \n- **:** \n\n1. **.\n   - "}]}'
    r'{"metadata":{},"parts":[{"type":"text","text":"'
)
"""As `threadkeep.stores.packing.Body` is written, with the parts of docs/protocol.md, section 3.2."""

DICTIONARY: Final = (_WORDS + _JSON).encode()
