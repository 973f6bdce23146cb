// SPDX-License-Identifier: PostgreSQL
//! Arithmetic expressions over reads: + - * / ( ), numbers and names.

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A constant.
    Number(f64),
    /// Name of a read or of a given value.
    Name(String),
    /// Two operands and the operator between them.
    Pair(Box<Expression>, char, Box<Expression>),
    /// A negated operand.
    Minus(Box<Expression>),
}

impl Expression {
    /// Parses an expression. The error quotes the invalid text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text };
        let expression = parser.sum()?;
        match parser.rest.trim_start() {
            "" => Ok(expression),
            rest => Err(format!("\"{text}\": syntax error at \"{rest}\"")),
        }
    }

    /// Evaluates the expression; `None` if a name has no value or a divisor is zero.
    pub fn value(&self, of: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Self::Number(number) => *number,
            Self::Name(name) => of(name)?,
            Self::Minus(inner) => -inner.value(of)?,
            Self::Pair(left, sign, right) => {
                let (left, right) = (left.value(of)?, right.value(of)?);
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
        };
        value.is_finite().then_some(value)
    }

    /// The names in the expression.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Minus(inner) => inner.names(),
            Self::Pair(left, _, right) => {
                let mut names = left.names();
                names.extend(right.names());
                names
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

/// Maximum nesting of parentheses and signs; limits the recursion.
const DEPTH: usize = 50;

impl Parser<'_> {
    fn next_is(&mut self, signs: [char; 2]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let sign = self.rest.chars().next().filter(|c| signs.contains(c))?;
        self.rest = &self.rest[1..];
        Some(sign)
    }

    fn sum(&mut self) -> Result<Expression, String> {
        self.sum_at(0)
    }

    fn sum_at(&mut self, depth: usize) -> Result<Expression, String> {
        let mut left = self.product(depth)?;
        while let Some(sign) = self.next_is(['+', '-']) {
            left = Expression::Pair(Box::new(left), sign, Box::new(self.product(depth)?));
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<Expression, String> {
        let mut left = self.atom(depth)?;
        while let Some(sign) = self.next_is(['*', '/']) {
            left = Expression::Pair(Box::new(left), sign, Box::new(self.atom(depth)?));
        }
        Ok(left)
    }

    fn atom(&mut self, depth: usize) -> Result<Expression, String> {
        if depth > DEPTH {
            return Err("too many parentheses".into());
        }
        self.rest = self.rest.trim_start();
        if self.next_is(['-', '-']).is_some() {
            return Ok(Expression::Minus(Box::new(self.atom(depth + 1)?)));
        }
        if self.next_is(['(', '(']).is_some() {
            let inner = self.sum_at(depth + 1)?;
            return match self.next_is([')', ')']) {
                Some(_) => Ok(inner),
                None => Err(format!("missing ) before \"{}\"", self.rest)),
            };
        }
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !word(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        let expression = match token.chars().next() {
            None if rest.is_empty() => return Err("unexpected end of the expression".into()),
            None => return Err(format!("syntax error at \"{rest}\"")),
            Some(c) if c.is_ascii_digit() || c == '.' => Expression::Number(
                token.parse().map_err(|_| format!("\"{token}\" is not a number"))?,
            ),
            Some(_) => Expression::Name(token.into()),
        };
        self.rest = rest;
        Ok(expression)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        let of = |name: &str| match name {
            "commits" => Some(90.0),
            "flushes" => Some(30.0),
            "nothing" => Some(0.0),
            _ => None,
        };
        Expression::parse(text).unwrap().value(&of)
    }

    #[test]
    fn operators_have_the_usual_precedence() {
        assert_eq!(value("commits / flushes"), Some(3.0));
        assert_eq!(value("1 + 2 * 3 - 4 / 2"), Some(5.0));
        assert_eq!(value("10 - 2 - 3"), Some(5.0));
        assert_eq!(value("-(1 + 2) * 1.5"), Some(-4.5));
    }

    #[test]
    fn unknown_names_and_division_by_zero_have_no_value() {
        assert_eq!(value("commits / unknown"), None);
        assert_eq!(value("commits / nothing"), None);
    }

    #[test]
    fn invalid_expressions_are_errors() {
        for text in ["", "1 +", "(1", "1)", "a b", "2 ** 3", "1..2", &"(".repeat(100_000)] {
            assert!(Expression::parse(text).is_err(), "{}", text.len());
        }
        assert_eq!(Expression::parse("a * (b - a)").unwrap().names(), ["a", "b", "a"]);
    }
}
