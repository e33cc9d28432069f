/** Edits uploaded images by the words of an instruction. Deterministic for the same upload and instruction. */
import { blank, flatten, free, orient, type Pixels, type PixelSize } from "./pixels.ts";
import { mix, type Rgb, tintColor } from "./color.ts";
import { colorize, FILTERS, tone } from "./filters.ts";
import { type Edit, readInstruction } from "./instruction.ts";
import { eachPixel, vignette } from "./layers.ts";
import { caption, previewSize } from "./paint.ts";
import { fill, type Point, rectangle } from "./path.ts";
import { cover, resize } from "./resize.ts";
import { lay, type Layer, paintLayers } from "./surface.ts";

/** EXIF orientation for each number of clockwise quarter turns. */
const TURNED = [1, 6, 3, 8] as const;

/** Parameters of an edit. */
export interface Editing {
  prompt: string;
  size: PixelSize;
  /** Index of the image in the request; it varies the colour temperature. */
  index: number;
  /** Present for a preview: 0 is the coarsest. */
  step?: number;
  /** Number of images, at least one. Several are put side by side. */
  count: number;
  hasMask: boolean;
}

/** An edit that receives its images one by one, so that only one of them is in memory. */
export interface Editor {
  /** Adds the next image, as displayed, and frees its pixels. */
  add(image: Pixels): void;
  /**
   * Returns one edited image of exactly the requested size. The edit applies where the mask is transparent. Frees the
   * mask.
   */
  finish(mask?: Pixels): Pixels;
}

/** Begins an edit. */
export function startEdit({ prompt, size: wanted, index, step, count, hasMask }: Editing): Editor {
  const size = step === undefined ? wanted : previewSize(wanted, step);
  const { turns, mirrored, upsideDown, edits } = readInstruction(prompt);
  const original = hasMask ? startArrangement(count, size) : undefined;
  const moved = startArrangement(count, size);

  function edit(): Pixels {
    let edited = moved.finish();
    const isFramed = edits.some(({ type }) => type === "border");
    for (const edit of edits) edited = apply(edited, { edit, isFramed });
    if (index > 0) tone(edited, { warmth: (index % 2 === 0 ? -0.5 : 0.5) * (0.5 + index * 0.12), saturation: 1.1 });
    return edited;
  }

  return {
    add(image) {
      original?.add(image, { keep: true });
      const turned = orient(image, TURNED[turns] ?? 1);
      if (turned !== image) free(image.data);
      const shown = orient(turned, mirrored ? 2 : upsideDown ? 4 : 1);
      if (shown !== turned) free(turned.data);
      moved.add(shown, { keep: false });
    },
    finish(mask) {
      const fitted = mask === undefined ? undefined : cover(mask, size);
      if (mask !== undefined && fitted !== mask) free(mask.data);
      const edited = edit();
      const made = fitted === undefined || original === undefined
        ? edited
        : blend(original.finish(), { edited, mask: fitted });
      const resized = resize(made, wanted);
      if (resized !== made) free(made.data);
      return resized;
    },
  };
}

/** Arranges images: one fills the size, several share it in rows. */
interface Arrangement {
  /** Adds the next image. Unless it is to be kept, its pixels are freed or reused for the result. */
  add(image: Pixels, options: { keep: boolean }): void;
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
      const fit = (room: PixelSize) => {
        const fitted = cover(image, room);
        if (!keep && fitted !== image) free(image.data);
        return flatten(keep ? copied(fitted, image) : fitted);
      };
      const i = added++;
      if (out === undefined) {
        out = fit(size);
        return;
      }
      const row = Math.floor(i / columns);
      const inRow = row === rows - 1 ? count - row * columns : columns;
      const left = Math.round((i % columns) * size.width / inRow);
      const right = Math.round((i % columns + 1) * size.width / inRow);
      const top = Math.round(row * size.height / rows), bottom = Math.round((row + 1) * size.height / rows);
      const room = {
        x: left + (left > 0 ? gap / 2 | 0 : 0),
        y: top + (top > 0 ? gap / 2 | 0 : 0),
        width: Math.max(1, right - left - (inRow > 1 ? gap : 0)),
        height: Math.max(1, bottom - top - (rows > 1 ? gap : 0)),
      };
      const cell = fit(room);
      for (let y = 0; y < cell.height && room.y + y < size.height; y++) {
        const width = Math.min(cell.width, size.width - room.x);
        out.data.set(
          cell.data.subarray(y * cell.width * 4, (y * cell.width + width) * 4),
          ((room.y + y) * size.width + room.x) * 4,
        );
      }
      free(cell.data);
    },
    finish() {
      if (out === undefined || added !== count) throw new RangeError(`Cannot arrange ${added} of ${count} pictures`);
      return out;
    },
  };
}

/** An image that may be modified: a copy if it is still the upload itself. */
function copied(pixels: Pixels, original: Pixels): Pixels {
  return pixels === original ? { ...pixels, data: pixels.data.slice() } : pixels;
}

function apply(pixels: Pixels, { edit, isFramed }: { edit: Edit; isFramed: boolean }): Pixels {
  switch (edit.type) {
    case "vignette":
      return over(pixels, [vignette(pixels, 0.75)]);
    case "round":
      return over(pixels, [corners(pixels)]);
    case "border":
      return over(pixels, border(pixels, edit.tint && tintColor(edit.tint)));
    case "text":
      return over(pixels, caption(edit.text, pixels, isFramed ? 0.12 : undefined));
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

/** Draws layers over an image, and frees its pixels. */
function over(pixels: Pixels, layers: readonly Layer[]): Pixels {
  const painted = paintLayers(pixels, [below(pixels), ...layers], { grain: 0 });
  free(pixels.data);
  return painted;
}

/** An image as the lowest layer. */
function below({ width, data }: Pixels): Layer {
  return (band) => {
    const from = band.top * width * 4, count = (band.bottom - band.top) * width;
    for (let i = 0; i < count; i++) {
      for (let channel = 0; channel < 3; channel++) {
        band.data[i * 3 + channel] = (data[from + i * 4 + channel] as number) / 255;
      }
    }
  };
}

/** A passe-partout: a wide frame with a fine line inside. */
function border({ width, height }: PixelSize, color: Rgb = [0.97, 0.96, 0.93]): Layer[] {
  const unit = Math.min(width, height);
  // Whole pixels, so that the pieces of the frame meet without a seam.
  const broad = Math.round(unit * 0.055), fine = Math.max(1, Math.round(unit * 0.004));
  const edge = Math.max(1, Math.round(unit * 0.002)), inset = broad + Math.round(unit * 0.012);
  const dark = mix(color, [0, 0, 0], 0.5);
  return [
    ...sides({ width, height }, 0, broad).map((outline) => fill(outline, color)),
    ...sides({ width, height }, broad, edge).map((outline) => fill(outline, dark, 0.8)),
    ...sides({ width, height }, inset, fine).map((outline) => fill(outline, color, 0.85)),
  ];
}

function sides({ width, height }: PixelSize, inset: number, thick: number): Point[][] {
  const across = { width: width - 2 * inset, height: thick };
  const down = { width: thick, height: height - 2 * inset - 2 * thick };
  return [
    rectangle(inset, inset, across),
    rectangle(inset, height - inset - thick, across),
    rectangle(inset, inset + thick, down),
    rectangle(width - inset - thick, inset + thick, down),
  ];
}

/** White outside a rectangle with rounded corners. */
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
