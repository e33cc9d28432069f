/** Edits uploaded images by the words of an instruction. The same upload and instruction always give the same image. */
import { blank, flatten, free, orient, type Pixels, type PixelSize } from "./pixels.ts";
import { mix, type Rgb, tintColor } from "./color.ts";
import { colorize, FILTERS, tone } from "./filters.ts";
import { type Edit, readInstruction } from "./instruction.ts";
import { eachPixel, vignette } from "./layers.ts";
import { caption, previewSize } from "./paint.ts";
import { fill, type Point, rectangle } from "./path.ts";
import { cover, resize } from "./resize.ts";
import { lay, type Layer, paintLayers } from "./surface.ts";

/** EXIF orientations that turn an image clockwise by 0 to 3 quarters. */
const TURN_ORIENTATIONS = [1, 6, 3, 8] as const;

/** Parameters of an edit. */
export interface Editing {
  /** The instruction. */
  prompt: string;
  /** Size of the result. */
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
  /**
   * Returns one edited image of exactly the requested size. With a mask, the edit applies where the mask is
   * transparent. Frees the mask.
   */
  finish(mask?: Pixels): Pixels;
}

/** Begins an edit. */
export function startEdit({ prompt, size: wanted, index, step, count, hasMask }: Editing): Editor {
  const size = step === undefined ? wanted : previewSize(wanted, step);
  const { turns, mirrored, upsideDown, edits } = readInstruction(prompt);
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
      const turned = orient(image, TURN_ORIENTATIONS[turns] ?? 1);
      if (turned !== image) free(image.data);
      const oriented = orient(turned, mirrored ? 2 : upsideDown ? 4 : 1);
      if (oriented !== turned) free(turned.data);
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
interface Arrangement {
  /** Adds the next image. Unless it is to be kept, its pixels are freed or reused for the result. */
  add(image: Pixels, options: { keep: boolean }): void;
  /** Returns the arranged images. @throws {RangeError} if not all were added */
  finish(): Pixels;
}

function startArrangement(count: number, size: PixelSize): Arrangement {
  const gap = Math.max(2, Math.round(Math.min(size.width, size.height) * 0.012));
  const columns = Math.max(1, Math.min(count, Math.ceil(Math.sqrt(count * size.width / size.height) - 0.2)));
  const rows = Math.ceil(count / columns);
  let out = count === 1 ? undefined : blank(size, 255);
  let added = 0;
  return {
    add(image, { keep }) {
      const fit = (size: PixelSize) => {
        const fitted = cover(image, size);
        if (!keep && fitted !== image) free(image.data);
        return flatten(keep ? copyUnlessNew(fitted, image) : fitted);
      };
      const index = added++;
      if (out === undefined) {
        out = fit(size);
        return;
      }
      const row = Math.floor(index / columns);
      const inRow = row === rows - 1 ? count - row * columns : columns;
      const left = Math.round((index % columns) * size.width / inRow);
      const right = Math.round((index % columns + 1) * size.width / inRow);
      const top = Math.round(row * size.height / rows), bottom = Math.round((row + 1) * size.height / rows);
      const cell = {
        x: left + (left > 0 ? gap / 2 | 0 : 0),
        y: top + (top > 0 ? gap / 2 | 0 : 0),
        width: Math.max(1, right - left - (inRow > 1 ? gap : 0)),
        height: Math.max(1, bottom - top - (rows > 1 ? gap : 0)),
      };
      const fitted = fit(cell);
      for (let y = 0; y < fitted.height && cell.y + y < size.height; y++) {
        const width = Math.min(fitted.width, size.width - cell.x);
        out.data.set(
          fitted.data.subarray(y * fitted.width * 4, (y * fitted.width + width) * 4),
          ((cell.y + y) * size.width + cell.x) * 4,
        );
      }
      free(fitted.data);
    },
    finish() {
      if (out === undefined || added !== count) throw new RangeError(`Cannot arrange ${added} of ${count} pictures`);
      return out;
    },
  };
}

/** Returns an image that may be modified: a copy if it is still the upload itself. */
function copyUnlessNew(pixels: Pixels, original: Pixels): Pixels {
  return pixels === original ? { ...pixels, data: pixels.data.slice() } : pixels;
}

/** Applies one edit, in place or to a new image. `isFramed` keeps a text inside the border. */
function apply(pixels: Pixels, { edit, isFramed }: { edit: Edit; isFramed: boolean }): Pixels {
  switch (edit.type) {
    case "vignette":
      return paintOver(pixels, [vignette(pixels, 0.75)]);
    case "round":
      return paintOver(pixels, [corners(pixels)]);
    case "border":
      return paintOver(pixels, border(pixels, edit.tint && tintColor(edit.tint)));
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
  const painted = paintLayers(pixels, [imageLayer(pixels), ...layers], { grain: 0 });
  free(pixels.data);
  return painted;
}

/** A layer that paints the image itself. */
function imageLayer({ width, data }: Pixels): Layer {
  return (band) => {
    const from = band.top * width * 4, count = (band.bottom - band.top) * width;
    for (let i = 0; i < count; i++) {
      for (let channel = 0; channel < 3; channel++) {
        band.data[i * 3 + channel] = (data[from + i * 4 + channel] as number) / 255;
      }
    }
  };
}

/** A passe-partout: a wide frame with a dark inner edge, and a fine line inside it. */
function border({ width, height }: PixelSize, color: Rgb = [0.97, 0.96, 0.93]): Layer[] {
  const unit = Math.min(width, height);
  // Whole pixels, so that the pieces of the frame meet without a seam.
  const frame = Math.round(unit * 0.055), line = Math.max(1, Math.round(unit * 0.004));
  const edge = Math.max(1, Math.round(unit * 0.002)), inset = frame + Math.round(unit * 0.012);
  const dark = mix(color, [0, 0, 0], 0.5);
  return [
    ...sides({ width, height }, 0, frame).map((outline) => fill(outline, color)),
    ...sides({ width, height }, frame, edge).map((outline) => fill(outline, dark, 0.8)),
    ...sides({ width, height }, inset, line).map((outline) => fill(outline, color, 0.85)),
  ];
}

/** Returns the four sides of a frame with a thickness, at a distance from the edge of the image. */
function sides({ width, height }: PixelSize, inset: number, thickness: number): Point[][] {
  const across = { width: width - 2 * inset, height: thickness };
  const down = { width: thickness, height: height - 2 * inset - 2 * thickness };
  return [
    rectangle(inset, inset, across),
    rectangle(inset, height - inset - thickness, across),
    rectangle(inset, inset + thickness, down),
    rectangle(width - inset - thickness, inset + thickness, down),
  ];
}

/** Paints everything outside a rectangle with rounded corners white. */
function corners({ width, height }: PixelSize): Layer {
  const radius = Math.min(width, height) * 0.14;
  return (band) =>
    eachPixel(band, (x, y, at) => {
      const dx = Math.max(0, radius - x - 0.5, x + 0.5 - (width - radius));
      const dy = Math.max(0, radius - y - 0.5, y + 0.5 - (height - radius));
      lay(band.data, at, [1, 1, 1], Math.min(1, Math.max(0, Math.hypot(dx, dy) - radius + 0.5)));
    });
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
