"""What a hostile model writes: markup that wants to run, and texts that want to stop the page."""

from __future__ import annotations

_RUN = "window.ran=(window.ran||0)+1"
# The same from a frame inside the page.
_RUN_ABOVE = "parent.ran=(parent.ran||0)+1"

# Each would run a script in a page that takes text for markup.
XSS: tuple[str, ...] = (
    f"<script>{_RUN}</script>",
    f"<img src=x onerror='{_RUN}'>",
    f'<svg onload="{_RUN}"></svg>',
    f"<svg><script>{_RUN}</script></svg>",
    f'<iframe srcdoc="<script>{_RUN_ABOVE}</script>"></iframe>',
    f'<iframe src="javascript:{_RUN_ABOVE}"></iframe>',
    f"<details open ontoggle='{_RUN}'>x</details>",
    f"<video><source onerror='{_RUN}'></video>",
    f"<audio src=x onerror='{_RUN}'></audio>",
    f"<input autofocus onfocus='{_RUN}'>",
    f"<style onload='{_RUN}'></style>",
    f'<object data="javascript:{_RUN}"></object>',
    f'<embed src="javascript:{_RUN}">',
    f"<body onload='{_RUN}'>",
    f"<marquee onstart='{_RUN}'>x</marquee>",
    f"<img src='x' onerror=\"{_RUN}\" ",
    f"<<img src=x onerror='{_RUN}'>",
    f'<a href="javascript:{_RUN}" id=go>x</a>',
    f'<math><mi xlink:href="javascript:{_RUN}">x</mi></math>',
    f"</code></pre><img src=x onerror='{_RUN}'>",
    f"&lt;script&gt;{_RUN}&lt;/script&gt;",
    f"```html\n</pre><img src=x onerror='{_RUN}'>\n```",
    f"`</code><img src=x onerror='{_RUN}'>`",
    f"```\"><img src=x onerror='{_RUN}'>\ncode\n```",
)

# Links that a click must not follow.
LINKS: tuple[str, ...] = (
    f"[go](javascript:{_RUN})",
    f"[go](JaVaScRiPt:{_RUN})",
    f"[go](java\tscript:{_RUN})",
    f"[go](&#106;avascript:{_RUN})",
    f"[go]( javascript:{_RUN})",
    f"[go](\x01javascript:{_RUN})",
    f"[go](data:text/html,<script>{_RUN}</script>)",
    f"[go](vbscript:{_RUN})",
    "[go](file:///etc/passwd)",
    "[go](blob:http://127.0.0.1/x)",
    f"<javascript:{_RUN}>",
    f"[go](<javascript:{_RUN}>)",
    f'[go](https://example.org" onclick="{_RUN})',
    f'[a"onmouseover="{_RUN}](https://example.org)',
    f"![x](javascript:{_RUN})",
    f'![x" onerror="{_RUN}](https://example.org/x.png)',
    "![tracker](https://tracker.test/pixel.png)",
    "[ref]\n\n[ref]: javascript:alert(1)",
)

_N = 40_000

# Long texts that make a careless reader go back over what it has read.
SLOW: dict[str, str] = {
    "stars": "*" * _N,
    "open stars": "*a " * (_N // 3),
    "star pairs": "**a*" * (_N // 4),
    "underscores": "_a" * (_N // 2),
    "open brackets": "[" * _N,
    "bracket pairs": "[a](" * (_N // 4),
    "bracket nest": "[](" * (_N // 3 - 400) + ")" + "[](" * 300,
    "image nest": "![" * (_N // 2),
    "ticks": "".join("`" * (n % 200 + 1) + "a" for n in range(400)),
    "open tick": "`" + "a" * _N,
    "angles": "<" * _N + ">",
    "addresses": "ahttp://" * (_N // 8),
    "address marks": "http://a" + ")" * _N,
    "address chain": "http://" * (_N // 7),
    "quotes": ">" * _N,
    "quote lines": "> " * 60 + "\n" + "\n".join("> " * n + "x" for n in range(200)),
    "lists": "- " * (_N // 2),
    "list stairs": "\n".join(" " * n + "- x" for n in range(300)),
    "numbers": "\n".join(f"{n}. x" for n in range(4000)),
    "table": "|" * _N + "\n" + "|-" * (_N // 2) + "|",
    "table rows": "a|b\n-|-\n" + "x|y\n" * 9000,
    "dashes": "- " * (_N // 2) + "x",
    "blanks": " " * _N + "x",
    "heading": "# " + "#" * _N,
    "escapes": "\\" * _N,
    "fences": "```\n~~~\n" * 4000,
    "one line": "word " * (_N // 5),
    "strikes": "~~a" * (_N // 3),
    "mixed": "*_[`~<!\\" * (_N // 8),
}
