//! Graphs: searches, paths, components, ranks.

use std::collections::{BTreeSet, VecDeque};

use crate::compare::{close, holds, same, same_set};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

/// Graph in compressed rows: the neighbours of `v` are `neighbour[start[v]..start[v + 1]]`, in order.
struct Graph {
    start: Vec<i32>,
    neighbour: Vec<i32>,
}

impl Graph {
    fn from_edges(vertices: usize, edges: &BTreeSet<(i32, i32)>) -> Graph {
        let mut start = vec![0; vertices + 1];
        for (u, _) in edges {
            start[*u as usize + 1] += 1;
        }
        for v in 0..vertices {
            start[v + 1] += start[v];
        }
        Graph { start, neighbour: edges.iter().map(|(_, v)| *v).collect() }
    }

    /// Returns a random graph with directed edges and no loops.
    fn directed(r: &mut Inputs, vertices: usize, edges: usize) -> Graph {
        let mut set = BTreeSet::new();
        while set.len() < edges {
            let (u, v) = (r.below(0, vertices as i64) as i32, r.below(0, vertices as i64) as i32);
            if u != v {
                set.insert((u, v));
            }
        }
        Graph::from_edges(vertices, &set)
    }

    fn vertices(&self) -> usize {
        self.start.len() - 1
    }

    fn of(&self, v: usize) -> &[i32] {
        &self.neighbour[self.start[v] as usize..self.start[v + 1] as usize]
    }

    /// Returns the distance of every vertex from vertex 0; -1 if there is no path.
    fn levels(&self) -> Vec<i32> {
        let mut level = vec![-1; self.vertices()];
        level[0] = 0;
        let mut queue = VecDeque::from([0usize]);
        while let Some(v) = queue.pop_front() {
            for u in self.of(v).iter().map(|u| *u as usize) {
                if level[u] < 0 {
                    level[u] = level[v] + 1;
                    queue.push_back(u);
                }
            }
        }
        level
    }
}

pub(crate) fn bfs(t: &mut Trial<'_>) -> Outcome {
    let graph = Graph::directed(&mut Inputs::new(60), 300, 700);
    let n = graph.vertices();
    let want = graph.levels();
    let mut first = vec![-1; n];
    first[0] = 0;
    let (ds, dn) = (t.upload(&graph.start)?, t.upload(&graph.neighbour)?);

    let levels = t.upload(&first)?;
    for level in 0..n as i32 {
        let changed = t.zeros::<i32>(1)?;
        t.launch("bfs_level", 3, 128, args![n as i32, ds, dn, levels, level, changed])?;
        if t.download(&changed)? == [0] {
            break;
        }
    }
    same("levels", &t.download(&levels)?, &want)?;

    let levels = t.upload(&first)?;
    let mut frontier = t.upload(&[0i32])?;
    let mut count = 1;
    for level in 0..n as i32 {
        let (next, next_count) = (t.output::<i32>(n)?, t.zeros::<i32>(1)?);
        let arguments = args![frontier, count, ds, dn, levels, level, next, next_count];
        t.launch("bfs_queue", (count as u32).div_ceil(64), 64, arguments)?;
        count = t.download(&next_count)?[0];
        let found: Vec<i32> = t.download(&next)?[..count as usize].to_vec();
        let expected: Vec<i32> = (0..n as i32).filter(|v| want[*v as usize] == level + 1).collect();
        same_set("frontier", &found, &expected)?;
        if count == 0 {
            break;
        }
        frontier = next;
    }
    same("levels by queue", &t.download(&levels)?, &want)
}

pub(crate) fn shortest_paths(t: &mut Trial<'_>) -> Outcome {
    let mut r = Inputs::new(61);
    let (n, edges) = (120, 500);
    let from = r.i32s(edges, 0, n);
    let to = r.i32s(edges, 0, n);
    let weight: Vec<u32> = r.many(edges, |r| r.below(1, 100) as u32);
    let mut distance = vec![u32::MAX; n as usize];
    distance[0] = 0;
    let (df, dt, dw, dd) = (t.upload(&from)?, t.upload(&to)?, t.upload(&weight)?, t.upload(&distance)?);
    for _ in 0..n {
        let changed = t.zeros::<i32>(1)?;
        t.launch("shortest_paths", 4, 128, args![edges as i32, df, dt, dw, dd, changed])?;
        if t.download(&changed)? == [0] {
            break;
        }
    }
    // Dijkstra, with the nearest open vertex found by a plain search.
    let mut done = vec![false; n as usize];
    while let Some(v) = (0..n as usize).filter(|v| !done[*v] && distance[*v] < u32::MAX).min_by_key(|v| distance[*v]) {
        done[v] = true;
        for e in (0..edges).filter(|e| from[*e] as usize == v) {
            let end = to[e] as usize;
            distance[end] = distance[end].min(distance[v] + weight[e]);
        }
    }
    same("distances", &t.download(&dd)?, &distance)
}

pub(crate) fn pagerank(t: &mut Trial<'_>) -> Outcome {
    let mut r = Inputs::new(62);
    let pages = 100;
    // Rows are incoming links: an edge (p, q) means that q links to p.
    let links = Graph::directed(&mut r, pages, 600);
    let mut degree = vec![0i32; pages];
    links.neighbour.iter().for_each(|q| degree[*q as usize] += 1);
    let rank = r.f64s(pages, 0.0, 0.02);
    let (ds, dn, dd) = (t.upload(&links.start)?, t.upload(&links.neighbour)?, t.upload(&degree)?);
    let (dr, next, change) = (t.upload(&rank)?, t.output::<f64>(pages)?, t.zeros::<f64>(1)?);
    t.launch("pagerank", 2, 64, args![pages as i32, ds, dn, dd, dr, next, 0.85f64, change])?;
    let share = |q: &i32| rank[*q as usize] / f64::from(degree[*q as usize]);
    let want: Vec<f64> = (0..pages).map(|p| 0.15 / pages as f64 + 0.85 * links.of(p).iter().map(share).sum::<f64>()).collect();
    close("ranks", &t.download(&next)?, &want, 1e-12, 0.0)?;
    let largest = want.iter().zip(&rank).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    close("change", &t.download(&change)?, &[largest], 1e-10, 0.0)
}

pub(crate) fn connected_components(t: &mut Trial<'_>) -> Outcome {
    let mut r = Inputs::new(63);
    let (n, edges) = (400, 300);
    let edge: Vec<[i32; 2]> = r.many(edges, |r| [r.below(0, n) as i32, r.below(0, n) as i32]);
    let identity: Vec<i32> = (0..n as i32).collect();
    let (de, parent, label) = (t.upload(&edge)?, t.upload(&identity)?, t.output::<i32>(n as usize)?);
    t.launch("components_join", 5, 64, args![edges as i32, de, parent])?;
    t.launch("components_flatten", 4, 128, args![n as i32, parent, label])?;
    // The smallest label spreads along the edges until nothing changes.
    let mut want = identity;
    loop {
        let before = want.clone();
        for [u, v] in &edge {
            let least = want[*u as usize].min(want[*v as usize]);
            want[*u as usize] = least;
            want[*v as usize] = least;
        }
        if want == before {
            break;
        }
    }
    same("labels", &t.download(&label)?, &want)
}

pub(crate) fn triangle_count(t: &mut Trial<'_>) -> Outcome {
    let mut r = Inputs::new(64);
    let n = 60;
    let mut adjacent = vec![vec![false; n]; n];
    let mut edges = BTreeSet::new();
    for _ in 0..500 {
        let (u, v) = (r.below(0, n as i64) as usize, r.below(0, n as i64) as usize);
        if u != v {
            (adjacent[u][v], adjacent[v][u]) = (true, true);
            edges.extend([(u as i32, v as i32), (v as i32, u as i32)]);
        }
    }
    let graph = Graph::from_edges(n, &edges);
    let (u, v): (Vec<i32>, Vec<i32>) = edges.iter().copied().unzip();
    let (du, dv, ds, dn) = (t.upload(&u)?, t.upload(&v)?, t.upload(&graph.start)?, t.upload(&graph.neighbour)?);
    let count = t.zeros::<u64>(1)?;
    t.launch("triangle_count", (u.len() as u32).div_ceil(128), 128, args![u.len() as i32, du, dv, ds, dn, count])?;
    let mut want = 0u64;
    for a in 0..n {
        for b in a + 1..n {
            want += (b + 1..n).filter(|c| adjacent[a][b] && adjacent[b][*c] && adjacent[a][*c]).count() as u64;
        }
    }
    holds("the graph has triangles", want > 0)?;
    same("triangles", &t.download(&count)?, &[want])
}

pub(crate) fn floyd_warshall(t: &mut Trial<'_>) -> Outcome {
    let n = 20;
    let mut r = Inputs::new(65);
    let mut distance: Vec<i32> = r.many(n * n, |r| if r.below(0, 4) == 0 { r.below(1, 50) as i32 } else { i32::MAX });
    (0..n).for_each(|i| distance[i * n + i] = 0);
    let (mut from, mut to) = (t.upload(&distance)?, t.output::<i32>(n * n)?);
    for k in 0..n {
        t.launch("floyd_warshall", [3, 3, 1], [8, 8, 1], args![from, to, n as i32, k as i32])?;
        std::mem::swap(&mut from, &mut to);
    }
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                if let Some(through) = distance[i * n + k].checked_add(distance[k * n + j]) {
                    distance[i * n + j] = distance[i * n + j].min(through);
                }
            }
        }
    }
    same("distances", &t.download(&from)?, &distance)
}
