"""Lines over numbers of ranks, as an SVG without a library."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 420, 320, 70, 50, 20, 50
COLOURS = ["#1f5fa8", "#c4572a", "#3c8a4b"]


def ticks(largest):
    """Four to eight round numbers from 0 to `largest` or a little more."""
    step = 1.0
    while largest / step > 8:
        step *= 2 if str(step).lstrip("0.").startswith(("1", "5")) else 2.5
    while largest / step < 4:
        step /= 2
    return [step * i for i in range(int(-(-largest // step)) + 1)]


def short(number):
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:g}{unit}"
    return f"{number:g}"


def panel(title, unit, lines, left):
    """@param lines  name: [(ranks, value), …]; a name that ends in '(ideal)' is dashed"""
    points = [point for line in lines.values() for point in line]
    widest = max(ranks for ranks, _ in points)
    marks = ticks(max(value for _, value in points))
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(ranks, value):
        return left + LEFT + width * ranks / widest, TOP + height * (1 - value / marks[-1])

    out = [f'<text x="{left + LEFT}" y="{TOP - 30}" font-weight="bold">{escape(title)}</text>']
    for mark in marks:
        x, y = place(0, mark)
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{x + width}" y2="{y:.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{short(mark)}{unit}</text>')
    for ranks in sorted({ranks for ranks, _ in points}):
        x, y = place(ranks, 0)
        out.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{ranks}</text>')
    out.append(f'<text x="{left + LEFT + width / 2}" y="{HEIGHT - 12}" text-anchor="middle">ranks</text>')
    for i, (name, line) in enumerate(lines.items()):
        colour = "#888888" if name.endswith("(ideal)") else COLOURS[i % len(COLOURS)]
        dashes = ' stroke-dasharray="5 4"' if name.endswith("(ideal)") else ""
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        if not dashes:
            for point in line:
                x, y = place(*point)
                out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        x = left + LEFT + 8 + 110 * i
        out.append(f'<text x="{x}" y="{TOP - 12}" fill="{colour}">{escape(name)}</text>')
    return out


def svg(panels):
    """@param panels  (title, unit, lines) each, side by side"""
    body = [line for i, one in enumerate(panels) for line in panel(*one, left=i * WIDTH)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(panels)}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{WIDTH * len(panels)}" height="{HEIGHT}" fill="white"/>', *body, "</svg>", ""])
