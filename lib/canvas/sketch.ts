/** Small drawings, each in its own coordinate system. Shapes are written as text: "x,y x,y …" for points. */
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

/** Options of a sketch. */
export interface SketchOptions {
  /** Full turns by which it is rotated. */
  turns?: number;
  /** True if it is mirrored. */
  flip?: boolean;
  /** True if ellipses have enough points to look round at any size. */
  round?: boolean;
}

/** Collects layers that are drawn around a point. Coordinates are relative to it, in units of `scale` pixels. */
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

  /** Converts points to pixels. */
  put(list: readonly Point[]): Point[] {
    return place(list, { at: this.#at, scale: this.#scale, ...this.#options });
  }

  /** Reads one point "x,y" and converts it to pixels. */
  point(text: string): Point {
    return this.put(points(text))[0] ?? this.#at;
  }

  /** Adds layers in pixels. */
  add(...layers: Layer[]): void {
    this.layers.push(...layers);
  }

  /** Adds a polygon. */
  polygon(outline: string, paint: Paint, alpha?: number): void {
    this.add(fill(this.put(points(outline)), paint, alpha));
  }

  /** Adds a shape with a smooth outline through the points. */
  blob(outline: string, paint: Paint, { alpha, steps }: { alpha?: number; steps?: number } = {}): void {
    this.add(fill(this.put(blob(points(outline), steps)), paint, alpha));
  }

  /** Adds a rectangle "left,top width,height". */
  box(shape: string, paint: Paint): void {
    const [[x, y] = [0, 0], [width, height] = [0, 0]] = points(shape);
    this.add(fill(this.put(rectangle(x, y, { width, height })), paint));
  }

  /** Adds an ellipse "x,y rx,ry", which has only twelve corners unless the sketch is `round`. */
  oval(shape: string, paint: Paint, alpha?: number): void {
    const [[x, y] = [0, 0], [rx, ry] = [0, 0]] = points(shape);
    const steps = this.#options.round === true ? Math.max(rx, ry) * this.#scale : 0;
    this.add(fill(this.put(ellipse([x, y], { rx, ry, steps })), paint, alpha));
  }

  /** Adds a line, with `smooth` a curved one. `width` is that of its start and, if it differs, of its end. */
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

  /** Returns a paint that changes from one colour to another between two points "x,y x,y". */
  gradient(from: Rgb, to: Rgb, line: string): Paint {
    const [start = this.#at, end = this.#at] = this.put(points(line));
    return { from, to, start, end };
  }
}
