/* Words and elements. */

const Words = {
  KINDS: {
    input: 'input',
    output: 'output',
    staging: 'copy for a collective',
    collective: 'read or written by a collective',
    workspace: 'workspace of a collective',
    temporary: 'temporary',
  },

  UNITS: ['B', 'KiB', 'MiB', 'GiB', 'TiB'],

  bytes(bytes) {
    let unit = 0;
    let value = bytes;
    while (value >= 1024 && unit < Words.UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return unit === 0 ? `${bytes} B` : `${value.toFixed(1)} ${Words.UNITS[unit]}`;
  },

  /** An offset on an axis, exactly, in a unit for steps of that many bytes. */
  tick(bytes, step) {
    const unit = bytes === 0 ? 0 : Math.min(Math.floor((Math.log2(step) + 3) / 10), Words.UNITS.length - 1);
    return `${bytes / 1024 ** unit} ${Words.UNITS[unit]}`;
  },

  micros(micros) {
    return micros < 1000 ? `${micros.toFixed(1)} µs` : `${(micros / 1000).toFixed(2)} ms`;
  },

  hex(offset) {
    return '0x' + offset.toString(16);
  },

  count(number, one, many = one + 's') {
    return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
  },

  ranks(ranks) {
    const parts = [];
    for (let i = 0; i < ranks.length; i++) {
      const from = ranks[i];
      while (i + 1 < ranks.length && ranks[i + 1] === ranks[i] + 1) {
        i++;
      }
      parts.push(from === ranks[i] ? `${from}` : `${from}–${ranks[i]}`);
    }
    return `${ranks.length === 1 ? 'rank' : 'ranks'} ${parts.join(', ')}`;
  },

  /** In which steps a buffer is in use. */
  life(graph, b) {
    const first = graph.first[b];
    const last = graph.last[b];
    return first < 0 && last >= graph.steps ? 'all the time'
      : first < 0 ? `from before the first step to step ${last}`
      : last >= graph.steps ? `from step ${first} to after the last, ${graph.steps - 1}`
      : first === last ? `in step ${first} only`
      : `from step ${first} to step ${last}`;
  },

  when(graph, step) {
    return step < 0 ? 'before the first step' : step >= graph.steps ? 'after the last step' : `at step ${step}`;
  },

  address(graph, b) {
    const arena = graph.values.get('arena', b);
    return arena === 'symmetric' || arena === 'local'
      ? `${arena} arena, at ${Words.hex(graph.offset[b])}`
      : arena === 'external_input' ? 'caller’s memory (input)' : 'caller’s memory (output)';
  },

  space(graph, b) {
    return graph.symmetric[b] ? 'symmetric: peers access it' : 'local: peers do not access it';
  },
};

/** An element with attributes, listeners (`onclick`) and children; text stays text. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) {
      element.addEventListener(name.slice(2), value);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** A bar behind a number. */
function bar(share) {
  const element = el('span', {class: 'bar'});
  element.style.width = `${100 * share}%`;
  return element;
}
