/* The differences between two plans, as `symplan diff` shows them. */

class Difference {
  constructor(before, after) {
    this.plan = [];
    this.memory = [];
    this.time = [];
    this.collectives = [];
    this.values = [];
    this.changedBuffers = [new Set(), new Set()];
    this.same = before.report.digest === after.report.digest;
    this.#heads(before.report, after.report);
    this.#sizes(before.report, after.report);
    this.#collectives(before, after);
    this.#values(before, after);
  }

  get nothing() {
    return [this.plan, this.memory, this.time, this.collectives, this.values].every((rows) => rows.length === 0);
  }

  #heads(before, after) {
    const head = (title, from, to) => {
      if (from !== to) {
        this.plan.push({title, from, to});
      }
    };
    head('name', before.name, after.name);
    head('target', before.target, after.target);
    head('ranks', before.ranks, after.ranks);
    head('graphs', before.graphs.length, after.graphs.length);
    head('order', before.total('order', 'outcome'), after.total('order', 'outcome'));
  }

  #sizes(before, after) {
    const sizes = {
      symmetric: 'symmetric_bytes',
      local: 'local_bytes',
      together: 'total_bytes',
      'live at most': 'total_bound_bytes',
      external: 'external_bytes',
    };
    for (const [title, fact] of Object.entries(sizes)) {
      const from = before.total('arenas', fact);
      const to = after.total('arenas', fact);
      if (from !== to) {
        this.memory.push({title, from: Words.bytes(from), to: Words.bytes(to), less: to < from,
          by: `${Words.bytes(Math.abs(to - from))} ${to < from ? 'less' : 'more'}`});
      }
    }
    const from = before.total('time', 'predicted_us');
    const to = after.total('time', 'predicted_us');
    if (Words.micros(from) !== Words.micros(to)) {
      this.time.push({title: 'predicted', from: Words.micros(from), to: Words.micros(to), less: to < from,
        by: `${Words.micros(Math.abs(to - from))} ${to < from ? 'less' : 'more'}`});
    }
  }

  #collectives(before, after) {
    const old = before.collectives.names;
    const now = after.collectives.names;
    for (const [name, was] of old) {
      if (!now.has(name)) {
        this.collectives.push({name, a: was, from: before.collectives.get('variant', was), to: 'gone', why: ''});
      }
    }
    for (const [name, is] of now) {
      const was = old.get(name);
      if (was === undefined) {
        this.collectives.push({name, b: is, from: 'none', to: after.collectives.get('variant', is), why: 'new'});
        continue;
      }
      const change = (fact, words = (value) => String(value)) => {
        const from = before.collectives.get(fact, was);
        const to = after.collectives.get(fact, is);
        if (from !== to) {
          const why = fact === 'variant' ? reasonOf(before, was, after, is) : fact.replaceAll('_', ' ');
          this.collectives.push({name, a: was, b: is, from: words(from), to: words(to), why});
        }
      };
      change('variant');
      change('stream');
      change('copied_bytes', Words.bytes);
      change('in_place', (inPlace) => inPlace ? 'in place' : 'apart');
    }
  }

  #values(before, after) {
    const old = placesByName(before);
    for (const [name, is] of placesByName(after)) {
      const was = old.get(name);
      if (was !== undefined && was.text !== is.text) {
        this.values.push({name, a: was.buffer, b: is.buffer, from: was.text, to: is.text});
        this.changedBuffers[0].add(was.buffer);
        this.changedBuffers[1].add(is.buffer);
      }
    }
  }
}

function placesByName(graph) {
  const places = new Map();
  const values = graph.ops.below ?? Table.empty();
  for (let v = 0; v < values.count; v++) {
    const name = values.get('title', v);
    const buffer = graph.bufferAt.get(values.get('buffer', v)) ?? -1;
    if (!places.has(name)) {
      const text = buffer < 0 ? 'no memory'
        : `${graph.values.get('arena', buffer).replaceAll('_', ' ')}${graph.symmetric[buffer] ? ', for peers' : ''}, `
          + Words.bytes(values.get('bytes', v));
      places.set(name, {text, buffer});
    }
  }
  return places;
}

/** Why a collective runs as a different variant. */
function reasonOf(before, was, after, is) {
  const verdict = (graph, row, variant) => graph.verdicts(row).find((v) => v.variant === variant);
  const from = before.collectives.get('variant', was);
  const to = after.collectives.get('variant', is);
  const old = verdict(after, is, from);
  if (old && !old.eligible) {
    return `${from} cannot: ${old.detail}`;
  }
  const then = verdict(before, was, to);
  if (then && !then.eligible) {
    return `${to} could not: ${then.detail}`;
  }
  if (verdict(after, is, to)?.reason === 'forced') {
    return 'forced';
  }
  if (verdict(before, was, from)?.reason === 'forced') {
    return 'no longer forced';
  }
  const micros = (v) => v ? Words.micros(v.micros) : 'unknown';
  return `${micros(verdict(after, is, to))}, not ${micros(old)}; `
    + `before ${micros(verdict(before, was, from))}, not ${micros(then)}`;
}
