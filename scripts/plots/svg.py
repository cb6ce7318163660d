"""Lines and matrices as an SVG, without a library."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 420, 320, 70, 60, 20, 50
COLOURS = ["#1f5fa8", "#c4572a", "#3c8a4b", "#7a4fa0"]


def ticks(smallest, largest):
    """Some four to ten round numbers that go from `smallest` or 0, the less, to `largest` or 0, the more."""
    smallest, largest = min(smallest, 0), max(largest, 0)
    if smallest == largest:
        return [0.0, 1.0]
    step, extent = 1.0, largest - smallest
    while extent / step > 8:
        step *= 2 if str(step).lstrip("0.").startswith(("1", "5")) else 2.5
    while extent / step < 4:
        step /= 2
    return [step * i for i in range(int(smallest // step), int(-(-largest // step)) + 1)]


def short(number):
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            return f"{number / limit:.4g}{unit}"
    return f"{number:.4g}"


def text(x, y, words, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(str(words))}</text>'


def lines(title, across, curves, unit="", at=None):
    """A panel of curves over the same axis; 0 is on both axes.

    @param curves  name: [(x, y), …], with one point at least; a name in brackets is dashed and grey
    @param at      where the axis has numbers; None: round ones
    """
    points = [point for curve in curves.values() for point in curve]
    marks = ticks(min(y for _, y in points), max(y for _, y in points))
    places = at or ticks(0, max(x for x, _ in points))
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x, y):
        return LEFT + width * x / places[-1], TOP + height * (marks[-1] - y) / (marks[-1] - marks[0])

    out = [text(LEFT, 20, title, font_weight="bold")]
    for mark in marks:
        x, y = place(0, mark)
        out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + width:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        out.append(text(x - 6, y + 4, short(mark) + unit, text_anchor="end"))
    out += [text(place(x, 0)[0], TOP + height + 18, short(x), text_anchor="middle") for x in places]
    out.append(text(LEFT + width / 2, HEIGHT - 12, across, text_anchor="middle"))
    for i, (name, curve) in enumerate(curves.items()):
        dashed = name.startswith("(")
        colour = "#888888" if dashed else COLOURS[i % len(COLOURS)]
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in curve)
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>')
        if not dashed and len(curve) <= 64:
            out += ['<circle cx="{:.1f}" cy="{:.1f}" r="2.5" fill="{}"/>'.format(*place(*point), colour) for point in curve]
        out.append(text(LEFT + 8 + 110 * i, 40, name, fill=colour))
    return out


def matrix(title, across, down, numbers):
    """A panel of squares: a row's numbers as shares of its sum, and in each square the number if there is room."""
    size = len(numbers)
    side = min(WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM) / size
    out = [text(LEFT, 20, title, font_weight="bold")]
    for i, row in enumerate(numbers):
        total = sum(row) or 1
        for j, number in enumerate(row):
            x, y, share = LEFT + j * side, TOP + i * side, number / total
            rest = round(255 * (1 - share))
            fill = f"#{rest:02x}{round(rest + (95 - 95 * rest / 255)):02x}ff" if number else "#ffffff"
            out.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.2f}" height="{side:.2f}" fill="{fill}" stroke="#dddddd">'
                f"<title>{i} taken for {j}: {number:g}</title></rect>"
            )
            if size <= 12 and number:
                colour = "#ffffff" if share > 0.5 else "#000000"
                words = {"text_anchor": "middle", "font_size": 9, "fill": colour}
                out.append(text(x + side / 2, y + side / 2 + 3, short(number), **words))
        if size <= 32:
            out.append(text(LEFT - 6, TOP + (i + 0.7) * side, i, text_anchor="end", font_size=min(12, side)))
            out.append(text(LEFT + (i + 0.5) * side, TOP - 4, i, text_anchor="middle", font_size=min(12, side)))
    out.append(text(LEFT + size * side / 2, HEIGHT - 12, across, text_anchor="middle"))
    turned = f"rotate(-90 18 {TOP + size * side / 2:.1f})"
    out.append(text(18, TOP + size * side / 2, down, text_anchor="middle", transform=turned))
    return out


def page(panels):
    """The panels side by side."""
    width = WIDTH * len(panels)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" font-family="sans-serif" font-size="12">']
    out.append(f'<rect width="{width}" height="{HEIGHT}" fill="white"/>')
    for i, panel in enumerate(panels):
        out += [f'<g transform="translate({i * WIDTH} 0)">', *panel, "</g>"]
    return "\n".join([*out, "</svg>", ""])


def write(path, words):
    """Beside, then in its place: nothing is half written."""
    part = path.with_name(path.name + ".part")
    part.write_text(words)
    part.replace(path)
