//! Splitting of a line into words, as in a shell.

/// Splits a line at blanks outside of quotes. Quotes of either kind are removed. Returns `None` if a quote is
/// not closed.
pub fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(split_words(r#" a  'b c'"d" '' "#).unwrap(), ["a", "b cd", ""]);
        assert_eq!(split_words("'a"), None);
        assert!(split_words("").unwrap().is_empty());
    }
}
