//! The lists outside of its folder in which a backend of this workspace is named.

use super::name::Name;
use crate::workspace::{read, root};

/// The files with these lists, and what they are with the backend in them.
pub(crate) fn with(name: &Name) -> Result<Vec<(&'static str, String)>, String> {
    let (package, module) = (name.package(), name.module());
    let mut workspace = List::read("Cargo.toml")?;
    let core = workspace.place("leasehold-core = ")?;
    let line =
        workspace.lines[core].replace("leasehold-core", &package).replace("crates/core", &format!("crates/{name}"));
    workspace.lines.insert(core + 1, line);
    // The pattern of the default members leaves out what begins like `testkit`.
    if name.as_str().starts_with('t') {
        workspace.add_value("default-members = [", &format!("crates/{name}"))?;
    }
    let feature = |switches_on: &str| format!("## `{name}:`.\n{name} = [\"{switches_on}\"]");
    let mut library = List::read("crates/leasehold/Cargo.toml")?;
    library.add("default = ", &feature(&format!("dep:{package}")))?;
    library.add("leasehold-core.workspace", &format!("{package} = {{ workspace = true, optional = true }}"))?;
    let mut built_in = List::read("crates/leasehold/src/backends.rs")?;
    // The first line that begins so ends the list.
    let end = built_in.place("}")?;
    let entry = format!("    {module} = leasehold_{module}, \"{name}\", [\"{name}\"];");
    built_in.lines.insert(end, entry);
    let mut program = List::read("crates/cli/Cargo.toml")?;
    program.add_value("default = [", name.as_str())?;
    program.add("default = ", &feature(&format!("leasehold/{name}")))?;
    Ok([workspace, library, built_in, program].map(|list| (list.file, list.lines.join("\n") + "\n")).into())
}

/// A file with lists.
struct List {
    file: &'static str,
    lines: Vec<String>,
}

impl List {
    fn read(file: &'static str) -> Result<Self, String> {
        Ok(Self { file, lines: read(&root().join(file))?.lines().map(str::to_owned).collect() })
    }

    /// Where the first line is that begins so.
    fn place(&self, begins: &str) -> Result<usize, String> {
        let at = self.lines.iter().position(|line| line.starts_with(begins));
        at.ok_or_else(|| format!("{} has no line that begins with `{begins}`", self.file))
    }

    /// Adds a line behind the first that begins so.
    fn add(&mut self, begins: &str, line: &str) -> Result<(), String> {
        let at = self.place(begins)?;
        self.lines.insert(at + 1, line.to_owned());
        Ok(())
    }

    /// Adds a value at the end of the array in the first line that begins so.
    fn add_value(&mut self, begins: &str, value: &str) -> Result<(), String> {
        let at = self.place(begins)?;
        let line = &mut self.lines[at];
        let end = line.rfind(']').ok_or_else(|| format!("{}: `{line}` is no whole array", self.file))?;
        line.insert_str(end, &format!(", \"{value}\""));
        Ok(())
    }
}
