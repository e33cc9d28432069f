/** Small drawings, each in its own coordinate system. Shapes are written as text: "x,y x,y …" for points. */
import { arc, curve, fill, type Paint, type Point, rectangle, stroke } from "./path.ts";
import type { Rgb } from "./color.ts";
import type { Layer } from "./surface.ts";

/** Reads points written as "x,y x,y …". */
function points(text: string): Point[] {
  return text.split(" ").map((pair): Point => {
    const [x = 0, y = 0] = pair.split(",").map(Number);
    return [x, y];
  });
}

/** Collects layers that are drawn around a point. Coordinates are relative to it, in units of `scale` pixels. */
export class Sketch {
  readonly layers: Layer[] = [];
  readonly #at: Point;
  readonly #scale: number;
  readonly #turns: number;
  readonly #flip: boolean;

  /** @param options `turns`: full turns, clockwise; `flip`: true to mirror it */
  constructor(at: Point, scale: number, { turns = 0, flip = false }: { turns?: number; flip?: boolean } = {}) {
    this.#at = at;
    this.#scale = scale;
    this.#turns = turns;
    this.#flip = flip;
  }

  #place(list: readonly Point[]): Point[] {
    const angle = this.#turns * 2 * Math.PI, [x, y] = this.#at;
    const cos = Math.cos(angle) * this.#scale, sin = Math.sin(angle) * this.#scale;
    return list.map(([px, py]) => {
      const fx = this.#flip ? -px : px;
      return [x + fx * cos - py * sin, y + fx * sin + py * cos];
    });
  }

  /** Reads one point "x,y" and converts it to pixels. */
  point(text: string): Point {
    return this.#place(points(text))[0] ?? this.#at;
  }

  add(...layers: Layer[]): void {
    this.layers.push(...layers);
  }

  #fill(outline: readonly Point[], paint: Paint, alpha?: number): void {
    this.add(fill(this.#place(outline), paint, alpha));
  }

  polygon(outline: string, paint: Paint, alpha?: number): void {
    this.#fill(points(outline), paint, alpha);
  }

  /** Adds a shape with a smooth outline through the points. */
  blob(outline: string, paint: Paint, alpha?: number): void {
    this.#fill(curve(points(outline), { closed: true }), paint, alpha);
  }

  /** Adds a rectangle "left,top width,height". */
  box(shape: string, paint: Paint): void {
    const [[x, y] = [0, 0], [width, height] = [0, 0]] = points(shape);
    this.#fill(rectangle(x, y, { width, height }), paint);
  }

  /** Adds an ellipse "x,y rx,ry". */
  oval(shape: string, paint: Paint, alpha?: number): void {
    const [center = this.#at, [rx, ry] = [0, 0]] = points(shape);
    this.#fill(arc(center, { rx, ry }), paint, alpha);
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
    this.#fill(stroke(smooth ? curve(points(path)) : points(path), from, to), paint, alpha);
  }

  /** Returns a paint that changes from one colour to another between two points "x,y x,y". */
  gradient(from: Rgb, to: Rgb, line: string): Paint {
    const [start = this.#at, end = this.#at] = this.#place(points(line));
    return { from, to, start, end };
  }
}
