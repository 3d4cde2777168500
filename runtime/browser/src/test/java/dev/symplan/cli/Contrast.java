package dev.symplan.cli;

/** Looks for text that is hard to read. */
final class Contrast {

  /**
   * A script: the visible texts whose contrast with their background is below 4.5, as WCAG 2.1
   * computes it, each with its contrast. Backgrounds are those of the elements around a text.
   */
  static final String WEAK_TEXTS =
      """
      (() => {
        const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
        const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        const paint = (colours) => {
          canvas.clearRect(0, 0, 1, 1);
          for (const colour of colours) {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
          }
          return [...canvas.getImageData(0, 0, 1, 1).data];
        };
        const weak = [];
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
          const text = texts.currentNode.data.trim();
          const element = texts.currentNode.parentElement;
          if (!text || !element.checkVisibility({visibilityProperty: true})
              || element.closest('script, style, canvas')) {
            continue;
          }
          const behind = [];
          for (let e = element; e; e = e.parentElement) {
            behind.unshift(getComputedStyle(e).backgroundColor);
          }
          behind.unshift(getComputedStyle(document.documentElement).backgroundColor);
          const ground = luminance(paint(behind));
          const ink = luminance(paint([...behind, getComputedStyle(element).color]));
          const contrast = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
          if (contrast < 4.5) {
            weak.push(`${contrast.toFixed(2)}: ${text}`);
          }
        }
        return weak;
      })()
      """;

  private Contrast() {}
}
