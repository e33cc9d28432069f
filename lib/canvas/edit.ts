/** Edits uploaded images by the words of an instruction. The same upload and instruction always give the same image. */
import { blank, flatten, free, orient, type Pixels, type PixelSize } from "./pixels.ts";
import { mix, type Rgb, tintColor } from "./color.ts";
import { colorize, FILTERS, tone } from "./filters.ts";
import { type Edit, readInstruction } from "./instruction.ts";
import { vignette } from "./layers.ts";
import { caption, previewSize } from "./paint.ts";
import { clamp } from "./random.ts";
import { cover, resize } from "./resize.ts";
import { eachPixel, lay, type Layer, paintLayers } from "./surface.ts";

/** Parameters of an edit. */
export interface Editing {
  prompt: string;
  size: PixelSize;
  /** Index of the image in the request; it varies the colour temperature. */
  index: number;
  /** Present for a preview: 0 (the coarsest) to 2. */
  step?: number;
  /** Number of images, at least one. Several are put side by side. */
  count: number;
  hasMask: boolean;
}

/** An edit that receives its images one by one, so that only one of them is in memory. */
export interface Editor {
  /** Adds the next image, already oriented as it is displayed, and frees its pixels. */
  add(image: Pixels): void;
  /** Returns an image of exactly the requested size, edited where the mask is transparent. Frees the mask. */
  finish(mask?: Pixels): Pixels;
}

/** Begins an edit. */
export function startEdit({ prompt, size: wanted, index, step, count, hasMask }: Editing): Editor {
  const size = step === undefined ? wanted : previewSize(wanted, step);
  const { orientation, edits } = readInstruction(prompt);
  const original = hasMask ? startArrangement(count, size) : undefined;
  const arranged = startArrangement(count, size);

  function edit(): Pixels {
    let edited = arranged.finish();
    const isFramed = edits.some(({ type }) => type === "border");
    for (const edit of edits) edited = apply(edited, { edit, isFramed });
    if (index > 0) tone(edited, { warmth: (index % 2 === 0 ? -0.5 : 0.5) * (0.5 + index * 0.12), saturation: 1.1 });
    return edited;
  }

  return {
    add(image) {
      original?.add(image, { keep: true });
      const oriented = orient(image, orientation);
      if (oriented !== image) free(image.data);
      arranged.add(oriented, { keep: false });
    },
    finish(mask) {
      const fitted = mask === undefined ? undefined : cover(mask, size);
      if (mask !== undefined && fitted !== mask) free(mask.data);
      const edited = edit();
      const blended = fitted === undefined || original === undefined
        ? edited
        : blend(original.finish(), { edited, mask: fitted });
      const resized = resize(blended, wanted);
      if (resized !== blended) free(blended.data);
      return resized;
    },
  };
}

/** Puts images side by side: one fills the whole size, several share it in rows. */
function startArrangement(count: number, size: PixelSize) {
  let out = count === 1 ? undefined : blank(size, 255);
  let added = 0;
  return {
    /** Adds the next image. Unless it is to be kept, its pixels are freed or reused for the result. */
    add(image: Pixels, { keep }: { keep: boolean }): void {
      const cell = cellOf(added++, count, size);
      const fitted = cover(image, cell);
      if (!keep && fitted !== image) free(image.data);
      // The upload itself is kept, so a copy of it is flattened.
      const flat = flatten(keep && fitted === image ? { ...image, data: image.data.slice() } : fitted);
      if (out === undefined) {
        out = flat;
        return;
      }
      for (let y = 0; y < cell.height && cell.y + y < size.height; y++) {
        const from = y * cell.width * 4, width = Math.min(cell.width, size.width - cell.x);
        out.data.set(flat.data.subarray(from, from + width * 4), ((cell.y + y) * size.width + cell.x) * 4);
      }
      free(flat.data);
    },
    /** Returns the arranged images. @throws {RangeError} if not all were added */
    finish(): Pixels {
      if (out === undefined || added !== count) throw new RangeError(`Cannot arrange ${added} of ${count} pictures`);
      return out;
    },
  };
}

/** Returns the place of an image among several, with gaps between them. */
function cellOf(index: number, count: number, size: PixelSize): PixelSize & { x: number; y: number } {
  const gap = Math.max(2, Math.round(Math.min(size.width, size.height) * 0.012));
  const columns = Math.max(1, Math.min(count, Math.ceil(Math.sqrt(count * size.width / size.height) - 0.2)));
  const rows = Math.ceil(count / columns), row = Math.floor(index / columns);
  /** Divides a length into parts, and returns the start and the length of the part `number`. */
  const part = (number: number, parts: number, length: number): [start: number, length: number] => {
    const start = Math.round(number * length / parts) + (number > 0 ? gap / 2 | 0 : 0);
    const end = Math.round((number + 1) * length / parts) - (parts > 1 ? gap : 0);
    return [start, Math.max(1, end - Math.round(number * length / parts))];
  };
  const [x, width] = part(index % columns, row === rows - 1 ? count - row * columns : columns, size.width);
  const [y, height] = part(row, rows, size.height);
  return { x, y, width, height };
}

/** Applies one edit, in place or to a new image. `isFramed` keeps a text inside the border. */
function apply(pixels: Pixels, { edit, isFramed }: { edit: Edit; isFramed: boolean }): Pixels {
  switch (edit.type) {
    case "vignette":
      return paintOver(pixels, [vignette(pixels, 0.75)]);
    case "round":
      return paintOver(pixels, [corners(pixels)]);
    case "border":
      return paintOver(pixels, [border(pixels, edit.tint && tintColor(edit.tint))]);
    case "text":
      return paintOver(pixels, caption(edit.text, pixels, isFramed ? 0.12 : undefined));
    case "tint":
      colorize(pixels, tintColor(edit.tint), 0.72);
      return pixels;
    case "tone":
      tone(pixels, edit);
      return pixels;
    default:
      FILTERS[edit.type](pixels, Math.min(pixels.width, pixels.height));
      return pixels;
  }
}

/** Returns an image with layers painted over it, and frees the pixels of the given one. */
function paintOver(pixels: Pixels, layers: readonly Layer[]): Pixels {
  const { width, data } = pixels;
  const image: Layer = (band) => {
    eachPixel(band, {}, (x, y, at) => {
      const from = (y * width + x) * 4;
      for (let channel = 0; channel < 3; channel++) band.data[at + channel] = (data[from + channel] as number) / 255;
    });
  };
  const painted = paintLayers(pixels, [image, ...layers], 0);
  free(data);
  return painted;
}

/** A passe-partout: a wide frame with a dark inner edge, and a fine line inside it. */
function border({ width, height }: PixelSize, color: Rgb = [0.97, 0.96, 0.93]): Layer {
  const unit = Math.min(width, height);
  const frame = Math.round(unit * 0.055), line = Math.round(unit * 0.012) + frame;
  const edgeEnd = frame + Math.max(1, Math.round(unit * 0.002)), lineEnd = line + Math.max(1, Math.round(unit * 0.004));
  const dark = mix(color, [0, 0, 0], 0.5);
  return (band) => {
    eachPixel(band, {}, (x, y, at) => {
      const inset = Math.min(x, y, width - 1 - x, height - 1 - y);
      if (inset < frame) lay(band.data, at, color, 1);
      else if (inset < edgeEnd) lay(band.data, at, dark, 0.8);
      else if (inset >= line && inset < lineEnd) lay(band.data, at, color, 0.85);
    });
  };
}

/** Paints everything outside a rectangle with rounded corners white. */
function corners({ width, height }: PixelSize): Layer {
  const radius = Math.min(width, height) * 0.14;
  return (band) => {
    eachPixel(band, {}, (x, y, at) => {
      const dx = Math.max(0, radius - x - 0.5, x + 0.5 - (width - radius));
      const dy = Math.max(0, radius - y - 0.5, y + 0.5 - (height - radius));
      lay(band.data, at, [1, 1, 1], clamp(Math.hypot(dx, dy) - radius + 0.5));
    });
  };
}

/** Blends the edit over the original through the mask. Frees original and mask. */
function blend(original: Pixels, { edited, mask }: { edited: Pixels; mask: Pixels }): Pixels {
  for (let at = 0; at < edited.data.length; at += 4) {
    const keep = (mask.data[at + 3] as number) / 255;
    for (let channel = 0; channel < 3; channel++) {
      const value = edited.data[at + channel] as number;
      edited.data[at + channel] = value + ((original.data[at + channel] as number) - value) * keep + 0.5;
    }
  }
  free(original.data);
  free(mask.data);
  return edited;
}
