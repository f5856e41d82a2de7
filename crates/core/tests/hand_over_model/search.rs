use std::collections::{BTreeMap, HashSet};
use std::fmt::{Debug, Write as _};
use std::hash::Hash;

/// A machine whose every behaviour is to be seen.
pub(crate) trait Machine: Copy + Debug + Default + Eq + Hash {
    type Rule: Copy + Debug;
    type Property: Copy + Debug + PartialEq;

    /// How far behaviours are followed: every rule that is dropped has to show before that.
    const STEPS: usize;

    /// All that can happen next, when this rule is not kept.
    fn steps(&self, dropped: Option<Self::Rule>) -> Vec<Step<Self>>;
}

/// One thing that happened.
pub(crate) struct Step<M: Machine> {
    pub(crate) what: &'static str,
    pub(crate) then: M,
    pub(crate) broken: Option<M::Property>,
}

/// What a search came to.
pub(crate) struct Found<M: Machine> {
    pub(crate) states: usize,
    /// How often each thing happened.
    pub(crate) seen: BTreeMap<&'static str, usize>,
    /// The property that does not hold, and the shortest way to where it does not.
    pub(crate) broken: Option<(M::Property, String)>,
}

/// Breadth first through every behaviour of so many steps, up to the first state in which a property does not hold.
pub(crate) fn search<M: Machine>(dropped: Option<M::Rule>) -> Found<M> {
    let start = M::default();
    let mut known = HashSet::from([start]);
    let mut way = vec![(0, "begins", start)];
    let mut seen = BTreeMap::new();
    let (mut at, mut steps, mut last_of_them) = (0, 0, 0);
    while let Some(&(.., state)) = way.get(at).filter(|_| steps < M::STEPS) {
        for Step { what, then, broken } in state.steps(dropped) {
            *seen.entry(what).or_default() += 1;
            if let Some(property) = broken {
                way.push((at, what, then));
                return Found { states: known.len(), seen, broken: Some((property, trace(&way))) };
            }
            if known.insert(then) {
                way.push((at, what, then));
            }
        }
        if at == last_of_them {
            (steps, last_of_them) = (steps + 1, way.len() - 1);
        }
        at += 1;
    }
    Found { states: known.len(), seen, broken: None }
}

/// How it came to the last state.
fn trace<M: Machine>(way: &[(usize, &'static str, M)]) -> String {
    let mut steps = vec![way.len() - 1];
    while let Some(&last) = steps.last()
        && last != 0
    {
        steps.push(way[last].0);
    }
    let mut told = String::new();
    for step in steps.into_iter().rev() {
        let (_, what, state) = &way[step];
        let _ = write!(told, "\n{what}: {state:?}");
    }
    told
}
