"""Shares over time as SVG: lines, with the phases as bands behind them."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 360
LEFT, RIGHT, TOP, BOTTOM = 48, 120, 96, 40  # margins
COLOURS = ("#0b6e4f", "#b45f06", "#3d5a99")


class Picture:
    def __init__(self, title, seconds):
        self.seconds = seconds
        self.parts = []
        self.lines = 0
        self.text(LEFT, 20, title, "start", 14)
        for tenths in range(0, 11, 2):
            y = self.y(tenths / 10)
            self.parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
            self.text(LEFT - 6, y + 4, f"{tenths / 10:.1f}", "end")
        for second in range(0, int(seconds) + 1, 30 if seconds > 60 else 5):
            self.text(self.x(second), HEIGHT - BOTTOM + 18, f"{second} s", "middle")

    def x(self, second):
        return LEFT + (WIDTH - LEFT - RIGHT) * second / self.seconds

    def y(self, share):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def text(self, x, y, text, anchor, size=11, more=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{escape(text)}</text>')

    def phase(self, name, begin, end):
        left, right = self.x(begin), self.x(end)
        self.parts.append(f'<path d="M{left:.1f} {TOP}H{right:.1f}V{HEIGHT - BOTTOM}H{left:.1f}Z" fill="#888" fill-opacity="0.13"/>')
        x, y = (left + right) / 2 + 3, TOP - 6
        self.text(x, y, name, "start", 11, f' transform="rotate(-32 {x:.1f} {y:.1f})"')

    def line(self, name, points):
        colour = COLOURS[self.lines % len(COLOURS)]
        self.lines += 1
        path = " ".join(f"{self.x(second):.1f},{self.y(share):.1f}" for second, share in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        _, last = points[-1]
        # Ends that meet are told apart by their order.
        self.text(WIDTH - RIGHT + 6, self.y(last) + 4 + 13 * (self.lines - 2), name, "start", 12, f' fill="{colour}"')

    def write(self, path):
        with open(path, "w") as file:
            file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
                       f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' + "\n".join(self.parts) + "\n</svg>\n")
