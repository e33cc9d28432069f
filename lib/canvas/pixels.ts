/** Pixels of an image in memory. */

/** Width and height in pixels. */
export interface PixelSize {
  width: number;
  height: number;
}

/** An image as rows of red, green, blue and alpha, a byte each, alpha not multiplied in. */
export interface Pixels extends PixelSize {
  data: Uint8Array<ArrayBuffer>;
}

/** An image of one kind of byte: 0, transparent black, unless told. */
export function blank({ width, height }: PixelSize, fill = 0): Pixels {
  return { width, height, data: new Uint8Array(width * height * 4).fill(fill) };
}

/** Frees the memory of bytes that are not used any more: the collector would keep hundreds of megabytes waiting. */
export function free({ buffer }: Uint8Array<ArrayBuffer>): void {
  buffer.transfer(0);
}

/** The image laid on white, in place, for forms without transparency. */
export function flatten(pixels: Pixels): Pixels {
  const { data } = pixels;
  for (let at = 3; at < data.length; at += 4) {
    const alpha = data[at] ?? 255;
    if (alpha === 255) continue;
    for (let place = at - 3; place < at; place++) {
      data[place] = Math.round(((data[place] ?? 0) * alpha + 255 * (255 - alpha)) / 255);
    }
    data[at] = 255;
  }
  return pixels;
}

/** The image as a viewer shows it that follows EXIF: orientation 1 to 8, anything else is 1. */
export function orient(pixels: Pixels, orientation: number): Pixels {
  if (!(orientation >= 2 && orientation <= 8)) return pixels;
  const { width, height } = pixels;
  const turned = orientation >= 5;
  const out = blank(turned ? { width: height, height: width } : { width, height });
  const from = new Uint32Array(pixels.data.buffer, pixels.data.byteOffset, width * height);
  const to = new Uint32Array(out.data.buffer);
  const mirroredX = orientation === 2 || orientation === 3 || orientation === 7 || orientation === 8;
  const mirroredY = orientation === 3 || orientation === 4 || orientation === 6 || orientation === 7;
  // Where the stored image is read for the pixel (x, y) of the one that is shown.
  for (let y = 0; y < out.height; y++) {
    for (let x = 0; x < out.width; x++) {
      const u = turned ? y : x;
      const v = turned ? x : y;
      const sourceX = mirroredX ? width - 1 - u : u;
      const sourceY = mirroredY ? height - 1 - v : v;
      to[y * out.width + x] = from[sourceY * width + sourceX] ?? 0;
    }
  }
  return out;
}
