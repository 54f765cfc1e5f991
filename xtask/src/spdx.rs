//! Licence expressions (SPDX 2.3, annex D): reading them, and whether an allow-list satisfies one.
//!
//! `WITH` binds closest, then `AND`, then `OR`; parentheses group. A `/` between licences, which old
//! manifests use, means `OR`. A licence with an exception is one item: it is allowed only when the
//! list holds both together. A `+` ("or later") is allowed when the licence itself is.
//!
//! It deliberately knows no licence by name.

use anyhow::{Result, bail};

/// A licence expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// One licence, with its exception where it has one: `Apache-2.0 WITH LLVM-exception`.
    Licence(String),
    /// Both must be satisfied.
    And(Box<Expression>, Box<Expression>),
    /// One of both must be satisfied.
    Or(Box<Expression>, Box<Expression>),
}

impl Expression {
    /// Reads an expression. The error says at which word it stops making sense.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut reader = Reader { text, words: &words, open: 0 };
        let expression = reader.either()?;
        match reader.words.first() {
            None => Ok(expression),
            Some(word) => {
                bail!("licence expression `{text}`: `{word}` where AND, OR or the end should be")
            }
        }
    }

    /// Whether choosing licences from `allowed` alone can satisfy the expression.
    pub(crate) fn is_satisfied_by(&self, allowed: &[&str]) -> bool {
        match self {
            Self::Licence(name) => {
                let plain = name.strip_suffix('+').unwrap_or(name);
                allowed.iter().any(|item| item.eq_ignore_ascii_case(plain))
            }
            Self::And(a, b) => a.is_satisfied_by(allowed) && b.is_satisfied_by(allowed),
            Self::Or(a, b) => a.is_satisfied_by(allowed) || b.is_satisfied_by(allowed),
        }
    }
}

/// Parentheses may be nested this deep; real expressions have one or two.
const DEPTH_MAX: usize = 32;

struct Reader<'a> {
    text: &'a str,
    words: &'a [&'a str],
    open: usize,
}

impl<'a> Reader<'a> {
    fn next_is(&mut self, word: &str) -> bool {
        let found = self.words.first().is_some_and(|next| next.eq_ignore_ascii_case(word));
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn either(&mut self) -> Result<Expression> {
        let mut left = self.both()?;
        while self.next_is("OR") {
            left = Expression::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression> {
        let mut left = self.item()?;
        while self.next_is("AND") {
            left = Expression::And(Box::new(left), Box::new(self.item()?));
        }
        Ok(left)
    }

    fn item(&mut self) -> Result<Expression> {
        if self.next_is("(") {
            self.open += 1;
            if self.open > DEPTH_MAX {
                bail!(
                    "licence expression `{}`: more than {DEPTH_MAX} nested parentheses",
                    self.text
                );
            }
            let inner = self.either()?;
            if !self.next_is(")") {
                bail!("licence expression `{}`: a parenthesis is not closed", self.text);
            }
            self.open -= 1;
            return Ok(inner);
        }
        let mut licence = self.name("a licence")?.to_owned();
        if self.next_is("WITH") {
            let exception = self.name("an exception")?;
            licence = format!("{licence} WITH {exception}");
        }
        Ok(Expression::Licence(licence))
    }

    fn name(&mut self, what: &str) -> Result<&'a str> {
        let reserved = ["(", ")", "AND", "OR", "WITH"];
        match self.words.split_first() {
            Some((word, rest)) if !reserved.iter().any(|r| r.eq_ignore_ascii_case(word)) => {
                self.words = rest;
                Ok(word)
            }
            Some((word, _)) => {
                bail!("licence expression `{}`: `{word}` where {what} should be", self.text)
            }
            None => bail!("licence expression `{}` ends where {what} should be", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn licence(name: &str) -> Expression {
        Expression::Licence(name.to_owned())
    }

    /// Every expression over A, B and C with at most `depth` levels of AND and OR.
    fn all(depth: usize) -> Vec<Expression> {
        let mut found: Vec<_> = ["A", "B", "C"].into_iter().map(licence).collect();
        if depth > 0 {
            let smaller = all(depth - 1);
            for a in &smaller {
                for b in &smaller {
                    found.push(Expression::And(Box::new(a.clone()), Box::new(b.clone())));
                    found.push(Expression::Or(Box::new(a.clone()), Box::new(b.clone())));
                }
            }
        }
        found
    }

    /// Writes an expression with a parenthesis around every operation.
    fn grouped(expression: &Expression) -> String {
        match expression {
            Expression::Licence(name) => name.clone(),
            Expression::And(a, b) => format!("({} AND {})", grouped(a), grouped(b)),
            Expression::Or(a, b) => format!("({} OR {})", grouped(a), grouped(b)),
        }
    }

    /// Writes an expression with only the parentheses it needs.
    fn sparse(expression: &Expression) -> String {
        let part = |inner: &Expression, needs: bool| {
            if needs { format!("({})", sparse(inner)) } else { sparse(inner) }
        };
        let is_or = |e: &Expression| matches!(e, Expression::Or(..));
        let is_and = |e: &Expression| matches!(e, Expression::And(..));
        match expression {
            Expression::Licence(name) => name.clone(),
            Expression::And(a, b) => {
                format!("{} AND {}", part(a, is_or(a)), part(b, is_or(b) || is_and(b)))
            }
            Expression::Or(a, b) => format!("{} OR {}", part(a, false), part(b, is_or(b))),
        }
    }

    /// The definition: some choice at every OR leaves a set of licences that are all allowed.
    fn choices(expression: &Expression) -> Vec<Vec<String>> {
        match expression {
            Expression::Licence(name) => vec![vec![name.clone()]],
            Expression::Or(a, b) => [choices(a), choices(b)].concat(),
            Expression::And(a, b) => {
                let (a, b) = (choices(a), choices(b));
                a.iter()
                    .flat_map(|x| b.iter().map(move |y| [x.clone(), y.clone()].concat()))
                    .collect()
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for expression in all(2) {
            for text in [
                grouped(&expression),
                sparse(&expression),
                sparse(&expression).to_lowercase().to_uppercase(),
            ] {
                assert_eq!(Expression::parse(&text).expect("valid"), expression, "{text}");
            }
        }
    }

    #[test]
    fn satisfied_exactly_when_some_choice_is_allowed() {
        for expression in all(2) {
            let choices = choices(&expression);
            for bits in 0..8u8 {
                let allowed: Vec<&str> = ["A", "B", "C"]
                    .into_iter()
                    .enumerate()
                    .filter(|(i, _)| bits >> i & 1 == 1)
                    .map(|(_, n)| n)
                    .collect();
                let expected = choices
                    .iter()
                    .any(|set| set.iter().all(|name| allowed.contains(&name.as_str())));
                assert_eq!(
                    expression.is_satisfied_by(&allowed),
                    expected,
                    "{expression:?} by {allowed:?}"
                );
            }
        }
    }

    #[test]
    fn expressions_met_in_the_wild() {
        let allowed =
            ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0", "Unlicense"];
        let satisfied = |text| Expression::parse(text).expect("valid").is_satisfied_by(&allowed);
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "Unlicense/MIT",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "MIT OR LGPL-2.1-or-later",
            "Apache-2.0+",
            "Apache-2.0 AND (GPL-3.0-only OR MIT)",
        ] {
            assert!(satisfied(good), "{good}");
        }
        for bad in [
            "GPL-3.0-only",
            "MIT AND OpenSSL",
            "MIT AND LGPL-2.1-or-later OR GPL-2.0-only",
            "MIT WITH Classpath-exception-2.0",
            "LLVM-exception",
        ] {
            assert!(!satisfied(bad), "{bad}");
        }
    }

    #[test]
    fn nonsense_is_refused_and_named() {
        for text in [
            "",
            " ",
            "AND",
            "MIT AND",
            "OR MIT",
            "MIT Apache-2.0",
            "(MIT",
            "MIT)",
            "()",
            "MIT WITH",
            "MIT WITH AND",
            "/",
        ] {
            let error = Expression::parse(text).expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
        let deep = format!("{}MIT{}", "(".repeat(1000), ")".repeat(1000));
        assert!(Expression::parse(&deep).is_err());
    }
}
