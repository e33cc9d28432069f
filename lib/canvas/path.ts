/** Outlines of shapes, and filling them with anti-aliased edges. */
import { mix, type Rgb } from "./color.ts";
import { clamp } from "./random.ts";
import { lay, type Layer } from "./surface.ts";

/** A point in pixels. */
export type Point = readonly [x: number, y: number];

/** A colour, or a gradient between two points. */
export type Paint = Rgb | { from: Rgb; to: Rgb; start: Point; end: Point };

/** Returns the outline of a rectangle. */
export function rectangle(x: number, y: number, { width, height }: { width: number; height: number }): Point[] {
  return [[x, y], [x + width, y], [x + width, y + height], [x, y + height]];
}

/** Returns points on an arc of an ellipse. `from` and `to` are in full turns, clockwise from the right. */
export function arc(
  [x, y]: Point,
  { rx, ry = rx, from = 0, to = 1, steps = 96 }:
    & { rx: number }
    & Partial<Record<"ry" | "from" | "to" | "steps", number>>,
): Point[] {
  return Array.from({ length: steps + 1 }, (_, i) => {
    const angle = (from + (to - from) * i / steps) * 2 * Math.PI;
    return [x + rx * Math.cos(angle), y + ry * Math.sin(angle)];
  });
}

/** Points of a curve between two of the points that it goes through. */
const CURVE_STEPS = 12;

/** Returns a smooth line through points, or a smooth outline if it is closed. */
export function curve(points: readonly Point[], { closed = false }: { closed?: boolean } = {}): Point[] {
  const last = points.length - 1;
  const at = (i: number): Point => points[closed ? (i + points.length) % points.length : clamp(i, last)] ?? [0, 0];
  return Array.from({ length: (closed ? points.length : last) * CURVE_STEPS + 1 }, (_, step) => {
    const i = Math.floor(step / CURVE_STEPS), t = step % CURVE_STEPS / CURVE_STEPS;
    const [before, from, to, after] = [at(i - 1), at(i), at(i + 1), at(i + 2)];
    return [
      spline(t, [before[0], from[0], to[0], after[0]]),
      spline(t, [before[1], from[1], to[1], after[1]]),
    ];
  });
}

/** Catmull-Rom interpolation of one coordinate. */
function spline(t: number, [before, from, to, after]: readonly [number, number, number, number]): number {
  const slopeFrom = (to - before) / 2, slopeTo = (after - from) / 2;
  const t2 = t * t, t3 = t2 * t;
  return from * (2 * t3 - 3 * t2 + 1) + slopeFrom * (t3 - 2 * t2 + t) + to * (3 * t2 - 2 * t3) + slopeTo * (t3 - t2);
}

/** Returns the outline of a line whose width changes from `from` to `to`. */
export function stroke(points: readonly Point[], from: number, to = from): Point[] {
  const last = points.length - 1;
  const sides = points.map(([x, y], i): [Point, Point] => {
    const [px, py] = points[clamp(i - 1, last)] ?? [x, y];
    const [nx, ny] = points[clamp(i + 1, last)] ?? [x, y];
    const half = (from + (to - from) * i / Math.max(1, last)) / 2 / (Math.hypot(nx - px, ny - py) || 1);
    const dx = (py - ny) * half, dy = (nx - px) * half;
    return [[x + dx, y + dy], [x - dx, y - dy]];
  });
  return [...sides.map(([left]) => left), ...sides.map(([, right]) => right).reverse()];
}

/** Fills an outline by the nonzero rule. */
export function fill(outline: readonly Point[], paint: Paint, alpha = 1): Layer {
  const xs = outline.map(([x]) => x), ys = outline.map(([, y]) => y);
  const left = Math.min(...xs), right = Math.max(...xs), upper = Math.min(...ys), lower = Math.max(...ys);
  return ({ width, top, bottom, data }) => {
    const firstX = Math.max(0, Math.floor(left)), endX = Math.min(width, Math.ceil(right) + 1);
    const firstY = Math.max(top, Math.floor(upper)), endY = Math.min(bottom, Math.ceil(lower) + 1);
    if (firstX >= endX || firstY >= endY) return;
    const columns = endX - firstX + 2;
    // Each edge adds, row by row, the area of each pixel to its right; the running sum from the left is the coverage.
    const cover = new Float32Array(columns * (endY - firstY));
    for (let i = 0; i < outline.length; i++) {
      const start = outline[i] as Point, end = outline[(i + 1) % outline.length] as Point;
      addEdge(cover, { start, end, columns, left: firstX, top: firstY, bottom: endY });
    }
    const shade = shader(paint);
    for (let y = firstY; y < endY; y++) {
      let sum = 0;
      for (let x = firstX; x < endX; x++) {
        sum += cover[(y - firstY) * columns + x - firstX] as number;
        const share = Math.min(1, Math.abs(sum)) * alpha;
        if (share > 0.002) lay(data, ((y - top) * width + x) * 3, shade(x, y), share);
      }
    }
  };
}

type Edge = Record<"start" | "end", Point> & Record<"columns" | "left" | "top" | "bottom", number>;

/** Adds an edge of an outline to the coverage, row by row. */
function addEdge(cover: Float32Array, { start, end, columns, left, top, bottom }: Edge): void {
  if (start[1] === end[1]) return;
  const sign = start[1] < end[1] ? 1 : -1;
  const [upper, lower] = sign > 0 ? [start, end] : [end, start];
  const slope = (lower[0] - upper[0]) / (lower[1] - upper[1]);
  const from = Math.max(upper[1], top), to = Math.min(lower[1], bottom);
  for (let row = Math.floor(from); row < to; row++) {
    const y0 = Math.max(from, row), y1 = Math.min(to, row + 1);
    const a = upper[0] + (y0 - upper[1]) * slope - left, b = upper[0] + (y1 - upper[1]) * slope - left;
    const line = cover.subarray((row - top) * columns, (row - top + 1) * columns);
    spread(line, { x0: Math.min(a, b), x1: Math.max(a, b), height: (y1 - y0) * sign });
  }
}

/** Adds the part of an edge within one row, from `x0` to `x1`, to the coverage of that row. */
function spread(cover: Float32Array, { x0, x1, height }: { x0: number; x1: number; height: number }): void {
  const limit = cover.length - 1;
  // Area to the right of the edge within each pixel, as differences between pixels.
  let previousArea = 0;
  const add = (column: number, area: number) => {
    const at = clamp(column, limit);
    cover[at] = (cover[at] as number) + area - previousArea;
    previousArea = area;
  };
  if (x1 <= 0) return add(0, height);
  if (x0 >= limit) return;
  const length = Math.max(1e-6, x1 - x0);
  for (let column = Math.floor(x0); column <= x0 + length; column++) {
    const enter = Math.max(x0, column), leave = Math.min(x0 + length, column + 1);
    add(column, height / length * (enter - x0 + (leave - enter) * (1 - ((enter + leave) / 2 - column))));
  }
  add(Math.floor(x0 + length) + 1, height);
}

/** Returns a function that gives the colour of a pixel. */
function shader(paint: Paint): (x: number, y: number) => Rgb {
  if (!("from" in paint)) return () => paint;
  const { from, to, start, end } = paint;
  const dx = end[0] - start[0], dy = end[1] - start[1];
  const length = dx * dx + dy * dy || 1;
  const steps = Array.from({ length: 65 }, (_, i) => mix(from, to, i / 64));
  return (x, y) => steps[Math.round(clamp(((x - start[0]) * dx + (y - start[1]) * dy) / length) * 64)] ?? from;
}
