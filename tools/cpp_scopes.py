"""Statements and functions of C++ sources, by braces and parentheses alone: enough for the checks in tools/.

It reads what a file says, not what macros make of it. The check of globals holds it against what nm finds in the
libraries; where both agree on every variable, it has read all scopes right.
"""

import re

NAMESPACE, CLASS, ENUM, CODE, VALUE = "namespace", "class", "enum", "code", "value"
BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
STATIC = re.compile(r"\b(?:static|thread_local)\b")
CLASS_HEAD = re.compile(r"^(typedef\s+)?(class|struct|union)\b")


def blanked(text):
    """The text with comments, literals and preprocessor lines blanked; every line keeps its number."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group(0))
    keep_quotes = lambda found: blank(found) if found.group(0).startswith("/") else '""' + blank(found)[2:]
    return DIRECTIVE.sub(blank, BLANKED.sub(keep_quotes, text))


def plain(text):
    """A declaration without what only confuses: attributes, template arguments, operators' names."""
    text = re.sub(r"\[\[.*?\]\]|\b(alignas|decltype|__attribute__|noexcept|requires)\s*\((?:[^()]|\([^()]*\))*\)", " ", text)
    text = re.sub(r"\boperator\s*(\(\)|\[\]|[^\s\w(]+)", "operator_", text)
    while True:  # innermost first
        shorter = re.sub(r"<[^<>;={}]*>", " ", text)
        if shorter == text:
            break
        text = shorter
    text = re.sub(r"\btemplate\b\s*(<[^;{}]*?>)?", " ", text)
    return " ".join(text.split())


def is_initialised(scope, head):
    """Whether what stands before a brace of code goes on behind it: `x = [] {...}();`, `static T x{...};`."""
    depth = 0
    for at, character in enumerate(head):
        depth += (character == "(") - (character == ")")
        if character == "=" and depth == 0:
            return True
    return scope == CODE and STATIC.match(head) is not None


def opens(scope, statement):
    """Which scope a brace after `statement` opens."""
    text = plain(statement)
    if scope in (CODE, VALUE):
        return CLASS if CLASS_HEAD.match(text) and "(" not in text else CODE
    if re.match(r'^(inline )?namespace\b', text) or text == 'extern ""':
        return NAMESPACE
    if re.match(r"^(typedef )?enum\b", text) and "=" not in text:
        return ENUM
    if CLASS_HEAD.match(text) and not re.search(r"\)\s*(const|noexcept)?$", text) and "=" not in text:
        return CLASS
    before_value = text.split("=", 1)[0]
    if "(" in before_value:
        # In a constructor's list `member{...}` a name stands before the brace, the body's brace has `)` or `}` there.
        in_list = re.search(r"\)\s*(noexcept\s*)?:(?!:)", text) and re.search(r"[\w>]$", text)
        return VALUE if in_list and not re.search(r"\b(const|override|final|noexcept|try|mutable)$", text) else CODE
    return VALUE


def walk(text):
    """In their order: ("statement", scope, text, begin, end), ("function", scope, head, begin, end) and ("namespace", ...)."""
    text = blanked(text)
    scope, statement, begin, depth = NAMESPACE, "", 0, 0
    outer = []  # the same of each brace that is open
    for at, character in enumerate(text):
        if character == "{":
            outer.append((scope, statement, begin, depth))
            scope, statement, depth = opens(scope, statement) if depth == 0 else CODE, "", 0
        elif character == "}":
            if not outer:
                continue
            inner = scope
            scope, statement, begin, depth = outer.pop()
            head = plain(statement)
            if inner in (CLASS, ENUM):  # `struct A {...} a;`: its variable is of a type without a name
                qualifiers = re.match(r"((static|inline|const|constexpr|thread_local)\s+)*", head).group(0)
                statement = qualifiers + "type_before "
            elif inner == VALUE or depth > 0 or is_initialised(scope, head):
                statement += "{}"
            else:
                if inner == CODE and scope in (NAMESPACE, CLASS):
                    yield "function", scope, statement, begin, at
                elif inner == NAMESPACE:
                    yield "namespace", scope, statement, begin, at
                statement = ""
        elif character == ";" and depth == 0:
            yield "statement", scope, statement, begin, at
            statement = ""
        elif character == ":" and scope == CLASS and statement.strip() in ("public", "private", "protected"):
            statement = ""
        else:
            depth = max(0, depth + (character == "(") - (character == ")"))
            if not statement.strip():
                begin = at
                if character.isspace():
                    continue
            statement += character


def statements(text):
    """(scope, text, its line) of each statement that ends with a semicolon."""
    return [(scope, said, text.count("\n", 0, begin) + 1)
            for kind, scope, said, begin, _ in walk(text) if kind == "statement"]


def functions(text):
    """(name, first line, lines) of each function with a body: from the line of its type to that of its last brace."""
    found = []
    for kind, _, head, begin, end in walk(text):
        if kind != "function":
            continue
        name = re.search(r"(~?[\w:]+)\s*\(([^()]*)", plain(head))
        called = name.group(1) if name else "?"
        if re.match(r"^TEST(_F|_P)?$", called):
            called = ".".join(part.strip() for part in name.group(2).split(","))
        line = text.count("\n", 0, begin) + 1
        found.append((called, line, text.count("\n", 0, end) + 2 - line))
    return found


def free_functions(text):
    """(name, line, namespaces, is local) of each function that is declared or defined in a namespace, not in a class.

    `namespaces` are the named ones around it, as one text; it is local in an unnamed one, or with `static`.
    """
    found, spaces = [], []
    for kind, scope, said, begin, end in walk(text):
        if kind == "namespace":
            spaces.append((begin, end, " ".join(said.split()).replace("inline ", "").removeprefix("namespace").strip()))
        elif scope == NAMESPACE:
            name = re.search(r"([\w:]+)\s*\(", plain(said).split("=", 1)[0])
            if name and "::" not in name.group(1) and name.group(1) != "static_assert":
                found.append((name.group(1), begin, STATIC.match(plain(said)) is not None))
    for name, begin, is_static in found:
        around = [space for first, last, space in sorted(spaces) if first < begin < last]
        yield name, text.count("\n", 0, begin) + 1, "::".join(filter(None, around)), is_static or "" in around
