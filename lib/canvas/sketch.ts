/** Small drawings in a coordinate system of their own. Geometry is written as text: "x,y x,y …" for points. */
import { blob, curve, ellipse, fill, type Paint, place, type Point, rectangle, stroke } from "./path.ts";
import type { Rgb } from "./color.ts";
import type { Layer } from "./surface.ts";

/** Reads points written as "x,y x,y …". */
export function points(text: string): Point[] {
  return text.split(" ").map((pair): Point => {
    const [x = 0, y = 0] = pair.split(",").map(Number);
    return [x, y];
  });
}

/** Rotation of a sketch, and the precision of its ellipses. */
export interface SketchOptions {
  turns?: number;
  flip?: boolean;
  round?: boolean;
}

/** Collects layers drawn around a point. Lengths are shares of the scale. */
export class Sketch {
  readonly layers: Layer[] = [];
  readonly #at: Point;
  readonly #scale: number;
  readonly #options: SketchOptions;

  constructor(at: Point, scale: number, options: SketchOptions = {}) {
    this.#at = at;
    this.#scale = scale;
    this.#options = options;
  }

  /** Points in pixels. */
  put(list: readonly Point[]): Point[] {
    return place(list, { at: this.#at, scale: this.#scale, ...this.#options });
  }

  /** One point "x,y" in pixels. */
  point(text: string): Point {
    return this.put(points(text))[0] ?? this.#at;
  }

  add(...layers: Layer[]): void {
    this.layers.push(...layers);
  }

  polygon(outline: string, paint: Paint, alpha?: number): void {
    this.add(fill(this.put(points(outline)), paint, alpha));
  }

  /** A smooth outline. */
  blob(outline: string, paint: Paint, { alpha, steps }: { alpha?: number; steps?: number } = {}): void {
    this.add(fill(this.put(blob(points(outline), steps)), paint, alpha));
  }

  /** A rectangle "left,top width,height". */
  box(shape: string, paint: Paint): void {
    const [[x, y] = [0, 0], [width, height] = [0, 0]] = points(shape);
    this.add(fill(this.put(rectangle(x, y, { width, height })), paint));
  }

  /** An ellipse "x,y rx,ry", of twelve corners unless the sketch is `round`. */
  oval(shape: string, paint: Paint, alpha?: number): void {
    const [[x, y] = [0, 0], [rx, ry] = [0, 0]] = points(shape);
    const steps = this.#options.round === true ? Math.max(rx, ry) * this.#scale : 0;
    this.add(fill(this.put(ellipse([x, y], { rx, ry, steps })), paint, alpha));
  }

  /** A straight or, with `smooth`, a curved line; `width` at its begin and at its end. */
  line(
    path: string,
    paint: Paint,
    { width: [from, to = from], smooth = false, alpha }: {
      width: readonly [number, number?];
      smooth?: boolean;
      alpha?: number;
    },
  ): void {
    const list = smooth ? curve(points(path)) : points(path);
    this.add(fill(stroke(this.put(list), from * this.#scale, to * this.#scale), paint, alpha));
  }

  /** A colour that changes from one point to another, "x,y x,y". */
  gradient(from: Rgb, to: Rgb, line: string): Paint {
    const [start = this.#at, end = this.#at] = this.put(points(line));
    return { from, to, start, end };
  }
}
