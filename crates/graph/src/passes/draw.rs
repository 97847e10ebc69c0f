//! A graph as a picture: `Graphviz`' text, or layers of boxes as SVG.

use super::infer_shape::{SHAPE, Shapes};
use crate::error::Result;
use crate::graph::{Graph, IndexedGraph};
use std::fmt::Write;

const WIDTH: usize = 168;
const HEIGHT: usize = 40;
const GAP: usize = 24;
const LEVEL: usize = 84;
/// Letters that fit into a box.
const LETTERS: usize = 25;

/// The text in the box of a node.
fn lines(indexed: &IndexedGraph, shapes: Option<&Shapes>, number: u32) -> [String; 2] {
    let node = &indexed.nodes()[number as usize];
    let shape = shapes.and_then(|shapes| shapes.get(indexed.entries_of(number).start)).map(ToString::to_string);
    let below = match (node.is_variable(), shape) {
        (true, shape) => shape.unwrap_or_default(),
        (false, Some(shape)) => format!("{} {shape}", node.op_name()),
        (false, None) => node.op_name().to_string(),
    };
    [node.name().to_string(), below]
}

/// The graph in `Graphviz`' language.
pub fn dot(graph: &Graph) -> Result<String> {
    let indexed = graph.indexed()?;
    let shapes = graph.get::<Shapes>(SHAPE);
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = String::from(
        "digraph {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n",
    );
    // Writing to a string does not fail.
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        let [name, below] = lines(&indexed, shapes.as_deref(), number).map(|line| quoted(&line));
        let fill = if node.is_variable() { "#e8eef7" } else { "#fff6df" };
        let _ = writeln!(text, "  n{number} [label=\"{name}\\n{below}\", fillcolor=\"{fill}\"];");
        for id in indexed.inputs(number) {
            let _ = writeln!(text, "  n{} -> n{number};", id.node);
        }
        for before in indexed.control(number) {
            let _ = writeln!(text, "  n{before} -> n{number} [style=dashed];");
        }
    }
    text.push_str("}\n");
    Ok(text)
}

/// The layer of each node, and its place in the layer: near the middle of its inputs.
fn layout(indexed: &IndexedGraph) -> (Vec<usize>, Vec<usize>, usize, usize) {
    let count = indexed.nodes().len();
    let mut layer = vec![0_usize; count];
    let numbers = || (0_u32..).take(count);
    for number in numbers() {
        let before = indexed.inputs(number).iter().map(|id| id.node).chain(indexed.control(number).iter().copied());
        layer[number as usize] = before.map(|each| layer[each as usize] + 1).max().unwrap_or(0);
    }
    // A variable stands right above its first user.
    let mut above = vec![usize::MAX; count];
    for number in numbers() {
        for id in indexed.inputs(number) {
            let slot = &mut above[id.node as usize];
            *slot = (*slot).min(layer[number as usize].saturating_sub(1));
        }
    }
    for &number in indexed.input_nodes() {
        if above[number as usize] != usize::MAX {
            layer[number as usize] = above[number as usize];
        }
    }
    let layers = layer.iter().max().map_or(0, |last| last + 1);
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); layers];
    numbers().for_each(|number| rows[layer[number as usize]].push(number));
    let mut place = vec![0_usize; count];
    for row in &mut rows {
        let middle = |number: &u32| {
            let inputs = indexed.inputs(*number);
            let sum: usize = inputs.iter().map(|id| place[id.node as usize] * 16).sum();
            if inputs.is_empty() { usize::MAX } else { sum / inputs.len() }
        };
        row.sort_by_cached_key(middle);
        for (at, &number) in row.iter().enumerate() {
            place[number as usize] = at;
        }
    }
    let wide = rows.iter().map(Vec::len).max().unwrap_or(0);
    (layer, place, layers, wide)
}

/// The graph as a picture that needs no program to lay it out.
pub fn svg(graph: &Graph) -> Result<String> {
    let indexed = graph.indexed()?;
    let shapes = graph.get::<Shapes>(SHAPE);
    let (layer, place, layers, wide) = layout(&indexed);
    let (width, height) = (wide * (WIDTH + GAP) + GAP, layers * LEVEL + GAP);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let corner = |number: u32| {
        let at = number as usize;
        (GAP + place[at] * (WIDTH + GAP), GAP / 2 + layer[at] * LEVEL)
    };
    let escaped = |line: &str| {
        let mut short: String = line.chars().take(LETTERS).collect();
        if short.len() < line.len() {
            short.push('…');
        }
        short.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    };
    // Writing to a string does not fail.
    for number in (0_u32..).take(indexed.nodes().len()) {
        let (x, y) = corner(number);
        let edges = indexed
            .inputs(number)
            .iter()
            .map(|id| (id.node, ""))
            .chain(indexed.control(number).iter().map(|&before| (before, " stroke-dasharray=\"4 3\"")));
        for (from, style) in edges {
            let (a, b) = corner(from);
            let (x1, y1, x2, y2) = (a + WIDTH / 2, b + HEIGHT, x + WIDTH / 2, y);
            let _ = writeln!(
                text,
                "<path d=\"M{x1} {y1}C{x1} {} {x2} {} {x2} {y2}\" fill=\"none\" stroke=\"#8a8f98\"{style}/>",
                y1 + 18,
                y2.saturating_sub(18)
            );
        }
    }
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        let (x, y) = corner(number);
        let fill = if node.is_variable() { "#e8eef7" } else { "#fff6df" };
        let [name, below] = lines(&indexed, shapes.as_deref(), number).map(|line| escaped(&line));
        let middle = x + WIDTH / 2;
        let _ = writeln!(
            text,
            "<g><title>{name}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"5\" fill=\"{fill}\" \
             stroke=\"#8a8f98\"/><text x=\"{middle}\" y=\"{}\">{name}</text><text x=\"{middle}\" y=\"{}\" \
             fill=\"#555\">{below}</text></g>",
            y + 16,
            y + 31
        );
    }
    text.push_str("</svg>\n");
    Ok(text)
}
