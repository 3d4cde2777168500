/* Colours and patterns. */

/** The colours of the style sheet, as canvases need them. */
class Colours {
  constructor(style) {
    const of = (name) => style.getPropertyValue(name).trim();
    for (const name of ['ink', 'muted', 'line', 'ground', 'paper', 'dimmed', 'shade']) {
      this[name] = of(`--${name}`);
    }
    this.profile = {symmetric: of('--profile-symmetric'), local: of('--profile-local')};
    this.fills = {};
    this.texts = {};
    this.hatches = {};
    for (const kind of KINDS) {
      const full = of(`--kind-${kind}`);
      this.fills[kind] = [d3.interpolateRgb(of('--ground'), full)(0.5), full];
      this.texts[kind] = d3.lab(full).l > 58 ? '#000' : '#fff';
      this.hatches[kind] = hatch(this.texts[kind]);
    }
    this.steps = {};
    this.stepTexts = {};
    for (const kind of ['op', 'fused', 'start', 'join']) {
      this.steps[kind] = of(`--step-${kind}`);
      this.stepTexts[kind] = d3.lab(this.steps[kind]).l > 58 ? '#000' : '#fff';
    }
  }
}

/** Diagonal lines, which tell symmetric memory apart without colour. */
function hatch(colour) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const context = tile.getContext('2d');
  context.strokeStyle = colour;
  context.globalAlpha = 0.4;
  context.lineWidth = 1.25;
  context.beginPath();
  for (const offset of [-8, 0, 8]) {
    context.moveTo(offset - 1, 9);
    context.lineTo(offset + 9, -1);
  }
  context.stroke();
  return context.createPattern(tile, 'repeat');
}
