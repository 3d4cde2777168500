/* The axis of an arena's offsets. If one buffer alone takes most of an arena, its stretch is drawn shortened:
 * otherwise the other buffers would be too small to see. */

/** The part of the axis that a shortened stretch takes. */
const SHORTENED = 0.4;

class Offsets {
  #knots;

  /**
   * @param size the bytes of the arena; the axis goes on beyond them
   * @param plans for each plan, its buffers in the arena: their offsets and ends, in bytes
   */
  constructor(size, plans) {
    this.size = size;
    const long = soleRuns(plans).find(({from, to, others}) => others && to - from > (1 - SHORTENED) * size);
    /** The bytes that are drawn shortened; null if all are drawn alike. */
    this.stretch = long ? {from: long.from, to: long.to} : null;
    this.#knots = [[0, 0], [size, size], [2 * size, 2 * size]];
    /** The units of the axis for each byte that is not drawn shortened. */
    this.unitsPerByte = 1;
    if (long) {
      this.unitsPerByte = ((1 - SHORTENED) * size) / (size - (long.to - long.from));
      const low = long.from * this.unitsPerByte;
      this.#knots.splice(1, 0, [long.from, low], [long.to, low + SHORTENED * size]);
    }
  }

  /** Where an offset lies on the axis. */
  at(offset) {
    return interpolated(this.#knots, 0, 1, offset);
  }

  /** The offset at a place of the axis. */
  invert(place) {
    return interpolated(this.#knots, 1, 0, place);
  }

  /** The parts of a range of bytes that are not drawn shortened, and have room for ticks. */
  plain([low, high]) {
    const {stretch, size} = this;
    return (stretch ? [[low, Math.min(stretch.from, high)], [Math.max(stretch.to, low), Math.min(high, size)]] : [[low, high]])
      .filter(([from, to]) => from <= to);
  }

  /** The place of the break in the stretch; null without one. */
  get rip() {
    return this.stretch && (this.at(this.stretch.from) + this.at(this.stretch.to)) / 2;
  }
}

function interpolated(knots, from, to, value) {
  let i = 1;
  while (i < knots.length - 1 && knots[i][from] < value) {
    i++;
  }
  const [a, b] = [knots[i - 1], knots[i]];
  return b[from] === a[from] ? b[to] : a[to] + ((value - a[from]) / (b[from] - a[from])) * (b[to] - a[to]);
}

/** The longest ranges of offsets that at most one buffer of each plan ever uses, the same one throughout. */
function soleRuns(plans) {
  const events = plans.flatMap((buffers, plan) => buffers.flatMap(({offset, end}, i) =>
    [{at: offset, plan, i, open: true}, {at: end, plan, i, open: false}])).sort((a, b) => a.at - b.at);
  const open = plans.map(() => new Set());
  const runs = [];
  const others = (sole) => plans.some((buffers, plan) => buffers.length > (sole[plan] === undefined ? 0 : 1));
  for (let e = 0; e < events.length; e++) {
    const {at, plan, i} = events[e];
    if (events[e].open) {
      open[plan].add(i);
    } else {
      open[plan].delete(i);
    }
    const to = events[e + 1]?.at ?? at;
    if (to > at && open.every((set) => set.size <= 1)) {
      const sole = open.map((set) => [...set][0]);
      const previous = runs.at(-1);
      if (previous?.to === at && previous.sole.every((buffer, p) => buffer === sole[p])) {
        previous.to = to;
      } else {
        runs.push({from: at, to, sole, others: others(sole)});
      }
    }
  }
  return runs;
}
