//! Advice for words of other languages and misspelt words.

/// Returns advice for a word of another language.
pub(crate) fn foreign_word(name: &str) -> Option<&'static str> {
    statement(name).or_else(|| {
        Some(match name {
            "true" => "true is written `t`",
            "false" => "false is written `f`",
            "return" => "a function has no `return`: its body is an expression",
            "do" => "NESL has no loops: use an apply-to-each, `{g(x) : x in v}`, or recursion",
            "null" | "nil" | "none" => "there is no empty value; an empty sequence is `[] int`",
            "len" | "size" => "the length of a sequence is `#v`",
            "elif" | "elsif" | "elseif" => "write `else if`",
            "reduce" | "fold" => "`sum`, `max_val`, `any` and `all` combine the elements of a sequence",
            "filter" => "a filter is written `{x in v | x > 0}`",
            "concat" => "`a ++ b` concatenates two sequences, `flatten(v)` all sequences in `v`",
            "print_int" | "println" | "printf" | "echo" => "`print_line(@e)` prints a value and a newline",
            "str" | "tostring" | "to_string" => "`@e` is the printed form of a value",
            "pow" => "`a ^ n` is a power with an int, `expt(a, b)` one with a float",
            _ => return None,
        })
    })
}

/// Returns advice for a word that begins a statement of another language.
fn statement(name: &str) -> Option<&'static str> {
    Some(match name {
        "while" | "loop" | "repeat" | "until" => {
            "NESL has no loops: a function that calls itself repeats, as in `function g(x) = if x < 3 then g(x + 1) else x;`"
        }
        "for" | "foreach" => "NESL has no loops: an apply-to-each computes a value for each element, as in `{g(x) : x in v}`",
        "def" | "fn" | "fun" | "func" | "define" => "a function is defined by `function g(x) = x + 1;`",
        "var" | "const" | "val" => "a variable is defined by `x = 1;`, and inside of a function by `let x = 1 in …`",
        "lambda" => "a function value is written `x => x + 1`",
        "type" | "struct" | "data" => "a datatype is defined by `datatype point(float, float);`",
        _ => return None,
    })
}

/// Returns advice for a word that cannot begin a form: one of another language, or a misspelt keyword.
pub(super) fn first_word(name: &str) -> Option<&'static str> {
    statement(name).or_else(|| misspelt_keyword(name))
}

/// Returns advice for a word that is nearly a keyword at the start of forms.
pub(super) fn misspelt_keyword(name: &str) -> Option<&'static str> {
    let keywords = [
        ("function", "write `function`, as in `function g(x) = x + 1;`"),
        ("datatype", "write `datatype`, as in `datatype point(float, float);`"),
    ];
    let is_near = |keyword: &str| edit_distance(name.as_bytes(), keyword.as_bytes()) <= 2;
    keywords.into_iter().find(|(keyword, _)| is_near(keyword)).map(|(_, advice)| advice)
}

/// Counts the letters to change, insert or delete between two words.
pub(crate) fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    if a.len().abs_diff(b.len()) > 4 || a.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
