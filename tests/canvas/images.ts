/** Images for tests of the painter, and comparisons. */
import { type Editing, startEdit } from "../../lib/canvas/edit.ts";
import { blank, type Pixels, type PixelSize } from "../../lib/canvas/pixels.ts";

/** An image with a different colour in each quarter. */
export function quarters({ width, height }: PixelSize): Pixels {
  const pixels = blank({ width, height }, 255);
  const colors = [[220, 60, 50], [60, 190, 80], [60, 80, 210], [230, 220, 90]];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      pixels.data.set(colors[(y * 2 >= height ? 2 : 0) + (x * 2 >= width ? 1 : 0)] ?? [], (y * width + x) * 4);
    }
  }
  return pixels;
}

/** PixelSize of the usual image. */
export const SQUARE = { width: 120, height: 120 };

/** Options of an edit except its prompt. */
export interface EditParts extends Partial<Editing> {
  images?: readonly Pixels[];
  mask?: Pixels;
}

/** The image that an instruction makes from some images. */
export function edited(prompt: string, { images = [quarters(SQUARE)], mask, ...parts }: EditParts = {}): Pixels {
  const editing = { prompt, size: SQUARE, index: 0, count: images.length, hasMask: mask !== undefined, ...parts };
  const editor = startEdit(editing);
  for (const image of images) editor.add({ ...image, data: image.data.slice() });
  return editor.finish(mask);
}

/** Red, green and blue of a pixel. */
export function at({ width, data }: Pixels, x: number, y: number): number[] {
  return [...data.subarray((y * width + x) * 4, (y * width + x) * 4 + 3)];
}

/** Mean difference of two images of one size. */
export function distance(one: Pixels, other: Pixels): number {
  let sum = 0;
  for (let at = 0; at < one.data.length; at++) sum += Math.abs((one.data[at] ?? 0) - (other.data[at] ?? 0));
  return sum / one.data.length;
}
