/** Decides if a quantity stays constant over a long time. */

/** A value at a time. */
export interface Point {
  /** Since the beginning, in seconds. */
  seconds: number;
  value: number;
}

/** Statistics of a series after its warm-up. */
export interface Trend {
  /** Means of the first, the middle and the last third. */
  thirds: [number, number, number];
  /** Growth per hour over the last two thirds, by least squares. */
  perHour: number;
  /** The last third minus the first one. */
  rise: number;
  /** True if the last third exceeds the middle one by no more than allowed. */
  flat: boolean;
}

/** Allowed increase of the last third: a share of the middle one or an amount, whichever is greater. */
export interface Tolerance {
  share: number;
  value: number;
}

/** The minimum of each group of consecutive points: for a heap, this is the part that is not garbage. */
export function lowsOf(points: readonly Point[], size: number): Point[] {
  return Array.from({ length: Math.ceil(points.length / size) }, (_, number) => {
    const window = points.slice(number * size, (number + 1) * size);
    return window.reduce((low, point) => point.value < low.value ? point : low);
  });
}

const HOUR = 3600;

/** Computes the statistics of a series of points in order. NaN if there are too few. */
export function trendOf(points: readonly Point[], tolerance: Tolerance): Trend {
  const third = (number: number) =>
    points.slice(Math.round(points.length * number / 3), Math.round(points.length * (number + 1) / 3));
  const means = [0, 1, 2].map((number) => mean(third(number).map(({ value }) => value)));
  const [first = NaN, middle = NaN, last = NaN] = means;
  return {
    thirds: [first, middle, last],
    perHour: slope([...third(1), ...third(2)]) * HOUR,
    rise: last - first,
    flat: last - middle <= Math.max(tolerance.share * middle, tolerance.value),
  };
}

/** Growth per second, by least squares. NaN for fewer than two points. */
export function slope(points: readonly Point[]): number {
  const [seconds, value] = [mean(points.map(({ seconds }) => seconds)), mean(points.map(({ value }) => value))];
  let [above, below] = [0, 0];
  for (const point of points) {
    above += (point.seconds - seconds) * (point.value - value);
    below += (point.seconds - seconds) ** 2;
  }
  return below === 0 ? NaN : above / below;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
}
