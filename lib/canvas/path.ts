/** Outlines of shapes, and filling them with anti-aliased edges. */
import { mix, type Rgb } from "./color.ts";
import { lay, type Layer } from "./surface.ts";

/** A point in pixels. */
export type Point = readonly [x: number, y: number];

/** A colour, or a gradient between two points. */
export type Paint = Rgb | { from: Rgb; to: Rgb; start: Point; end: Point };

/** Returns the outline of a rectangle. */
export function rectangle(x: number, y: number, { width, height }: { width: number; height: number }): Point[] {
  return [[x, y], [x + width, y], [x + width, y + height], [x, y + height]];
}

/**
 * Returns the outline of an ellipse. It has twice `steps` points, but 12 to 160; the default of `steps` is the longer
 * radius.
 */
export function ellipse(
  [x, y]: Point,
  { rx, ry, steps = Math.max(rx, ry) }: { rx: number; ry: number; steps?: number },
): Point[] {
  const count = Math.max(12, Math.min(160, Math.ceil(steps * 2)));
  return Array.from({ length: count }, (_, i) => {
    const angle = i / count * 2 * Math.PI;
    return [x + rx * Math.cos(angle), y + ry * Math.sin(angle)];
  });
}

/** Returns a smooth closed outline through points, with `steps` points for each. */
export function blob(points: readonly Point[], steps = 10): Point[] {
  const at = (i: number): Point => points[(i + points.length) % points.length] ?? [0, 0];
  return points.flatMap((_, i) => bend([at(i - 1), at(i), at(i + 1), at(i + 2)], steps));
}

/** Returns a smooth open line through points, with `steps` points for each. */
export function curve(points: readonly Point[], steps = 12): Point[] {
  const at = (i: number): Point => points[Math.max(0, Math.min(points.length - 1, i))] ?? [0, 0];
  const parts = points.slice(1).flatMap((_, i) => bend([at(i - 1), at(i), at(i + 1), at(i + 2)], steps));
  return [...parts, at(points.length - 1)];
}

/** Returns the curve from the second of four points to the third, without its end point. */
function bend([before, from, to, after]: readonly [Point, Point, Point, Point], steps: number): Point[] {
  return Array.from({ length: steps }, (_, step) => [
    spline(step / steps, [before[0], from[0], to[0], after[0]]),
    spline(step / steps, [before[1], from[1], to[1], after[1]]),
  ]);
}

/** Catmull-Rom interpolation of one coordinate. */
function spline(t: number, [before, from, to, after]: readonly [number, number, number, number]): number {
  const slopeFrom = (to - before) / 2, slopeTo = (after - from) / 2;
  const t2 = t * t, t3 = t2 * t;
  return from * (2 * t3 - 3 * t2 + 1) + slopeFrom * (t3 - 2 * t2 + t) + to * (3 * t2 - 2 * t3) + slopeTo * (t3 - t2);
}

/** Returns the outline of a line whose width changes from `from` to `to`. */
export function stroke(points: readonly Point[], from: number, to = from): Point[] {
  const left: Point[] = [], right: Point[] = [];
  for (const [i, [x, y]] of points.entries()) {
    const [px, py] = points[Math.max(0, i - 1)] ?? [x, y];
    const [nx, ny] = points[Math.min(points.length - 1, i + 1)] ?? [x, y];
    const length = Math.hypot(nx - px, ny - py) || 1;
    const half = (from + (to - from) * i / Math.max(1, points.length - 1)) / 2;
    const dx = -(ny - py) / length * half, dy = (nx - px) / length * half;
    left.push([x + dx, y + dy]);
    right.unshift([x - dx, y - dy]);
  }
  return [...left, ...right];
}

/**
 * Moves, scales and turns an outline that was drawn around the origin. `turns` are full turns, clockwise on the screen.
 */
export function place(
  points: readonly Point[],
  { at: [x, y], scale = 1, turns = 0, flip = false }: { at: Point; scale?: number; turns?: number; flip?: boolean },
): Point[] {
  const cos = Math.cos(turns * 2 * Math.PI) * scale, sin = Math.sin(turns * 2 * Math.PI) * scale;
  return points.map(([px, py]) => {
    const fx = flip ? -px : px;
    return [x + fx * cos - py * sin, y + fx * sin + py * cos];
  });
}

/** Fills an outline by the nonzero rule. */
export function fill(outline: readonly Point[], paint: Paint, alpha = 1): Layer {
  let left = Infinity, right = -Infinity, upper = Infinity, lower = -Infinity;
  for (const [x, y] of outline) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    upper = Math.min(upper, y);
    lower = Math.max(lower, y);
  }
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
    if (y1 <= y0) continue;
    const height = (y1 - y0) * sign;
    const a = upper[0] + (y0 - upper[1]) * slope - left, b = upper[0] + (y1 - upper[1]) * slope - left;
    spread(cover, { base: (row - top) * columns, columns, x0: Math.min(a, b), x1: Math.max(a, b), height });
  }
}

/** Adds the part of an edge within one row, from `x0` to `x1`, to the coverage of that row. */
function spread(
  cover: Float32Array,
  { base, columns, x0, x1, height }: { base: number; columns: number; x0: number; x1: number; height: number },
): void {
  const limit = columns - 1;
  const add = (column: number, amount: number) => {
    const at = base + Math.max(0, Math.min(limit, column));
    cover[at] = (cover[at] as number) + amount;
  };
  if (x1 <= 0) return add(0, height);
  if (x0 >= limit) return;
  const first = Math.floor(x0), last = Math.floor(x1);
  if (first === last) {
    const share = 1 - ((x0 + x1) / 2 - first);
    add(first, height * share);
    add(first + 1, height * (1 - share));
    return;
  }
  const perPixel = height / (x1 - x0);
  // Area to the right of the edge within each pixel, as differences between pixels.
  let previousArea = 0;
  for (let column = first; column <= last; column++) {
    const enter = Math.max(x0, column), leave = Math.min(x1, column + 1);
    const crossed = (leave - enter) * perPixel;
    const before = (enter - x0) * perPixel;
    const area = before + crossed * (1 - ((enter + leave) / 2 - column));
    add(column, area - previousArea);
    previousArea = area;
  }
  add(last + 1, height - previousArea);
}

/** Returns a function that gives the colour of a pixel. */
function shader(paint: Paint): (x: number, y: number) => Rgb {
  if (!("from" in paint)) return () => paint;
  const { from, to, start, end } = paint;
  const dx = end[0] - start[0], dy = end[1] - start[1];
  const length = dx * dx + dy * dy || 1;
  const steps = Array.from({ length: 65 }, (_, i) => mix(from, to, i / 64));
  return (x, y) => {
    const share = ((x - start[0]) * dx + (y - start[1]) * dy) / length;
    return steps[share <= 0 ? 0 : share >= 1 ? 64 : (share * 64 + 0.5) | 0] ?? from;
  };
}
