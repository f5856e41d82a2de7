//! The resource that the locks protect: one value, and the largest token that came with a request.

/// A register with a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// The largest token that it took; smaller ones are refused.
    pub fence: Option<u64>,
    /// What was written last.
    pub value: Option<u64>,
}

impl Register {
    /// Takes `value` and returns what it replaces. `None`: the token is smaller than one that was taken before, and nothing is
    /// changed. A request without a token is never refused.
    pub fn write(&mut self, token: Option<u64>, value: u64) -> Option<Option<u64>> {
        self.read(token)?;
        Some(self.value.replace(value))
    }

    /// The register after this request has raised the fence, or `None` as in [`write`](Self::write).
    pub fn read(&mut self, token: Option<u64>) -> Option<Self> {
        if token.is_some() && token < self.fence {
            return None;
        }
        self.fence = self.fence.max(token);
        Some(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_token_than_one_that_was_taken_is_refused_and_changes_nothing() {
        let mut register = Register::default();
        assert_eq!(register.write(Some(5), 50), Some(None));
        assert_eq!(register.write(Some(5), 51), Some(Some(50)));
        assert_eq!(register.write(Some(4), 40), None);
        assert_eq!(register.read(Some(4)), None);
        assert_eq!(register, Register { fence: Some(5), value: Some(51) });
    }

    #[test]
    fn a_read_with_a_token_keeps_smaller_ones_from_writing_and_one_without_keeps_nobody() {
        let mut register = Register::default();
        assert_eq!(register.read(Some(6)), Some(Register { fence: Some(6), value: None }));
        assert_eq!(register.read(None), Some(register));
        assert_eq!(register.write(Some(5), 50), None);
        assert_eq!(register.write(None, 1), Some(None), "no token, no fence");
    }
}
