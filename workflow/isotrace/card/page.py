"""The card as one HTML page for a phone: no script, no network, no font to fetch; pictures are SVG in the text."""

import html
from collections.abc import Iterable

from isotrace.card.findings import Finding
from isotrace.card.made import Card
from isotrace.card.pictures import picture
from isotrace.card.relations import Relation
from isotrace.card.words import SAID, limits, when, where, with_interval

STYLE = """
*{box-sizing:border-box}body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;max-width:68rem;padding:1rem;
color:#1a1a1a;background:#fff;overflow-wrap:anywhere}h1{font-size:1.3rem;margin:.2rem 0}h2{font-size:1.1rem;
margin:1.8rem 0 .5rem}h3{font-size:1rem;margin:0}p{margin:.3rem 0}small,.muted{color:#555;font-size:.85rem}
.grid{display:grid;gap:.8rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,19rem),1fr))}
article{border:1px solid #ddd;border-left:.35rem solid #888;border-radius:.3rem;padding:.6rem .7rem}
article.ok{border-left-color:#1b6e3c}article.watch{border-left-color:#a86400}article.alarm{border-left-color:#a4262c}
b.badge{float:right;padding:0 .5rem;border-radius:.7rem;color:#fff;background:#666;font-size:.85rem}
b.ok{background:#1b6e3c}b.watch{background:#8a5200}b.alarm{background:#a4262c}
.big{font-size:1.35rem;font-weight:600}svg{display:block;width:100%;height:auto;margin:.4rem 0}
svg text{font:11px system-ui,sans-serif;fill:#555}.verdict{font-size:1.2rem;font-weight:600;padding:.6rem .8rem;
border-radius:.3rem;background:#eee}.verdict.ok{background:#e3f1e7}.verdict.watch{background:#fbeed6}
.verdict.alarm{background:#f9e0e0}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{border-bottom:1px solid #ddd;padding:.25rem .4rem .25rem 0;text-align:left;vertical-align:top}
td+td,th+th{text-align:right;overflow-wrap:normal}li{margin:.3rem 0}ul,ol{padding-left:1.2rem}
"""
QUESTION = "Is this model's representation collapsing?"
READING = (
    "Numbers are of this run and this text. Where there are several sites the worst counts; measures are means over "
    "token buckets. Dashed lines are the thresholds, thin lines are sites, the thick line is the worst of each "
    "checkpoint, its shade the interval over sequences. Thresholds are those of the config (card.thresholds); their "
    "defaults are a choice, not a law: set them from a run that you trust."
)
MOVING = (
    "Rank correlation over the checkpoints of this run, with the interval that errors of single checkpoints make. "
    "1 or -1 says that both follow training, not that one makes the other; there is no p-value for one run."
)


def page(card: Card, study: str) -> str:
    """The page as HTML; the same bytes for the same card."""
    title = html.escape(f"{card.model}: {QUESTION.lower()}")
    head = (
        "<meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><style>{STYLE}</style>"
    )
    parts = [
        f"<p class=muted>{html.escape(study)}</p><h1>{html.escape(card.model)}</h1><p>{QUESTION}</p>",
        _verdict(card),
        f"<h2>What was measured</h2><div class=grid>{''.join(map(_article, card.findings))}</div>",
        f"<p><small>{READING}</small></p>",
        _causes(card),
        _next(card),
        _relations(card),
    ]
    return f"<!doctype html><html lang=en><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(text: str) -> str:
    """Escaped, with a capital and a full stop."""
    return html.escape(f"{_upper(text)}.")


def _items(texts: Iterable[str], tag: str = "ul") -> str:
    return f"<{tag}>{''.join(f'<li>{text}</li>' for text in texts)}</{tag}>"


def _verdict(card: Card) -> str:
    steps = sorted({f.step for f in card.findings if f.worst is not None})
    step = f", step {steps[-1]:,}" if steps else ""
    said = [
        f"{html.escape(f.measure.title)}: {f.verdict}, {with_interval(f.value, f.lo, f.hi)} {html.escape(where(f))}"
        for f in card.beyond
    ]
    told = f"{len(card.findings) - len(card.unknown)} of {len(card.findings)} measures could be judged."
    return (
        f"<p class='verdict {card.verdict}'>{SAID[card.verdict]}{step}.</p>{_items(said) if said else ''}"
        f"<p class=muted>{told}</p>"
    )


def _article(finding: Finding) -> str:
    """One measure: verdict, number, picture, since when."""
    value = with_interval(finding.value, finding.lo, finding.hi)
    badge = f"<b class='badge {finding.verdict}'>{finding.verdict}</b>"
    said = "".join(f"<p>{html.escape(text)}</p>" for text in when(finding))
    return (
        f"<article class={finding.verdict}>{badge}<h3>{html.escape(finding.measure.title)}</h3>"
        f"<p><span class=big>{value}</span> <small>{html.escape(where(finding))}</small></p>"
        f"{picture(finding)}{said}"
        f"<p><small>{_sentence(limits(finding))} {_sentence(finding.measure.meaning)}</small></p></article>"
    )


def _causes(card: Card) -> str:
    head = "<h2>Likely causes of a narrow cloud</h2>"
    if card.place is None:
        return f"{head}<p>Nothing was measured that has a cause to look for.</p>"
    place = html.escape(f"Asked at {card.place.site}, step {card.place.step:,}, where {card.place.why}.")
    said = (f"<b>{html.escape(_upper(c.name))}: {c.answer}.</b> {_sentence(c.evidence)}" for c in card.causes)
    return f"{head}<p class=muted>{place}</p>{_items(said)}"


def _next(card: Card) -> str:
    said = [f"<b>{html.escape(_upper(what))}:</b> {_sentence(look)}" for what, look in card.next()]
    told = _items(said, "ol") if said else "<p>Nothing is beyond its threshold and no cause stands out.</p>"
    return f"<h2>What to look at next</h2>{told}"


def _relations(card: Card) -> str:
    notes = _items(map(html.escape, card.notes)) if card.notes else ""
    names = list(dict.fromkeys(r.against for r in card.relations))
    tables = "".join(_relation(name, [r for r in card.relations if r.against == name]) for name in names)
    return f"<h2>Does it matter?</h2><p><small>{MOVING}</small></p>{tables}{notes}"


def _relation(name: str, rows: list[Relation]) -> str:
    body = "".join(
        f"<tr><td>{html.escape(r.title)}<br><small>{html.escape(r.note)}</small></td>"
        f"<td>{with_interval(r.rho, r.lo, r.hi)}</td><td>{r.n}</td></tr>"
        for r in rows
    )
    head = f"<tr><th>against {html.escape(name)}</th><th>rank correlation</th><th>n</th></tr>"
    return f"<table>{head}{body}</table>"
