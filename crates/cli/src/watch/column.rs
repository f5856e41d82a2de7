use Column::{Held, Holders, Key, Label, Left, Mode, Reason, Token, Waiting};

/// The columns of the table, in the order in which they are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Column {
    #[default]
    Key,
    Mode,
    Holders,
    Label,
    Reason,
    Token,
    Held,
    Left,
    Waiting,
}

impl Column {
    pub(super) const ALL: [Self; 9] = [Key, Mode, Holders, Label, Reason, Token, Held, Left, Waiting];

    /// The columns that a narrow terminal lacks, the first to go first. The key is always there.
    const FIRST_TO_GO: [Self; 8] = [Token, Holders, Held, Waiting, Mode, Reason, Label, Left];

    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Numbers and times, which are read from the right.
    pub(super) fn is_number(self) -> bool {
        !matches!(self, Key | Mode | Label | Reason)
    }

    /// The width that a column has at least while anything is known for it: the times in it go on, and shall not move the others.
    pub(super) fn steady(self) -> usize {
        match self {
            Held | Left => "23 h 59 m".len(),
            _ => 0,
        }
    }

    /// The width below which the column is of no use, if all of its cells need `whole`.
    fn least(self, whole: usize) -> usize {
        match self {
            Key | Label => whole.min(12),
            Reason => whole.min(10),
            _ => whole,
        }
    }
}

/// The space between two columns.
pub(super) const GAP: usize = 2;

/// Chooses the columns that fit into `width`, and the width of each. `whole` are the columns to choose from, each with the width
/// that its cells need.
pub(super) fn fit(mut whole: Vec<(Column, usize)>, width: usize) -> Vec<(Column, usize)> {
    let needed = |columns: &[(Column, usize)]| {
        columns.iter().map(|(column, whole)| column.least(*whole) + GAP).sum::<usize>().saturating_sub(GAP)
    };
    for goes in Column::FIRST_TO_GO {
        if needed(&whole) > width {
            whole.retain(|(column, _)| *column != goes);
        }
    }
    let mut spare = width.saturating_sub(needed(&whole));
    let mut fitted: Vec<_> = whole.iter().map(|(column, whole)| (*column, column.least(*whole).min(width))).collect();
    // One cell to each that needs more, in turn, so that one long text does not take all.
    loop {
        let before = spare;
        for ((_, has), (_, wants)) in fitted.iter_mut().zip(&whole) {
            if *has < *wants && spare > 0 {
                *has += 1;
                spare -= 1;
            }
        }
        if before == spare {
            return fitted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: [(Column, usize); 8] =
        [(Key, 30), (Mode, 9), (Holders, 7), (Label, 20), (Reason, 40), (Token, 16), (Held, 9), (Left, 9)];

    #[test]
    fn all_that_fits_is_shown_and_the_key_always() {
        for width in 0..220 {
            let fitted = fit(WIDE.to_vec(), width);
            let total: usize = fitted.iter().map(|(_, width)| width + GAP).sum();
            assert!(total <= width + GAP, "{width}: {fitted:?}");
            assert_eq!(fitted.first().map(|(column, _)| *column), Some(Key));
            for (column, given) in &fitted {
                let whole = WIDE.iter().find(|(of, _)| of == column).unwrap().1;
                assert!(*given <= whole, "{width}: {column:?} has more than it needs");
            }
        }
        assert_eq!(fit(WIDE.to_vec(), 500), WIDE);
        let at_80: Vec<_> = fit(WIDE.to_vec(), 78).into_iter().map(|(column, _)| column).collect();
        assert_eq!(at_80, [Key, Mode, Label, Reason, Held, Left]);
    }

    #[test]
    fn what_is_spare_goes_to_the_texts_in_equal_parts() {
        let fitted = fit(vec![(Key, 100), (Label, 14), (Left, 4)], 60);
        assert_eq!(fitted, [(Key, 38), (Label, 14), (Left, 4)]);
    }
}
