/** Uncompressed images in memory, and their orientation and transparency. */

/** Width and height in pixels. */
export interface PixelSize {
  width: number;
  height: number;
}

/** Rows of RGBA pixels, one byte per channel, alpha not premultiplied. */
export interface Pixels extends PixelSize {
  data: Uint8Array<ArrayBuffer>;
}

/** Creates an image filled with one byte value; 0 is transparent black. */
export function blank({ width, height }: PixelSize, fill = 0): Pixels {
  return { width, height, data: new Uint8Array(width * height * 4).fill(fill) };
}

/** Frees a buffer at once: until the garbage collector did it, hundreds of megabytes could pile up. */
export function free({ buffer }: Uint8Array<ArrayBuffer>): void {
  buffer.transfer(0);
}

/** Blends the image with white, in place, for formats without transparency. */
export function flatten(pixels: Pixels): Pixels {
  const { data } = pixels;
  for (let at = 3; at < data.length; at += 4) {
    const alpha = data[at] ?? 255;
    if (alpha === 255) continue;
    for (let channel = at - 3; channel < at; channel++) {
      data[channel] = Math.round(((data[channel] ?? 0) * alpha + 255 * (255 - alpha)) / 255);
    }
    data[at] = 255;
  }
  return pixels;
}

/** Applies an EXIF orientation, 1 to 8; any other value means 1. Returns the image itself if there is nothing to do. */
export function orient(pixels: Pixels, orientation: number): Pixels {
  if (!(orientation >= 2 && orientation <= 8)) return pixels;
  const { width, height } = pixels;
  const isTransposed = orientation >= 5;
  const out = blank(isTransposed ? { width: height, height: width } : { width, height });
  const from = new Uint32Array(pixels.data.buffer, pixels.data.byteOffset, width * height);
  const to = new Uint32Array(out.data.buffer);
  const mirrorsX = [2, 3, 7, 8].includes(orientation), mirrorsY = [3, 4, 6, 7].includes(orientation);
  // Finds the source of each displayed pixel (x, y).
  for (let y = 0, at = 0; y < out.height; y++) {
    for (let x = 0; x < out.width; x++, at++) {
      const u = isTransposed ? y : x, v = isTransposed ? x : y;
      to[at] = from[(mirrorsY ? height - 1 - v : v) * width + (mirrorsX ? width - 1 - u : u)] ?? 0;
    }
  }
  return out;
}
