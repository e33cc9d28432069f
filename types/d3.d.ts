// The packages have no types of their own. These are the signatures that are used here.

declare module "d3-scale" {
  /** A scale from numbers or moments to pixels. */
  interface ContinuousScale {
    (value: number): number;
    domain(ends: readonly [number, number]): this;
    range(ends: readonly [number, number]): this;
    /** Moves the ends of the domain to round values. */
    nice(count?: number): this;
    /** Round values within the domain, about as many. */
    ticks(count?: number): number[];
  }

  /** A scale from names to bands of one width. */
  interface BandScale {
    (name: string): number | undefined;
    domain(names: readonly string[]): this;
    range(ends: readonly [number, number]): this;
    paddingInner(share: number): this;
    bandwidth(): number;
    step(): number;
  }

  export function scaleLinear(): ContinuousScale;
  export function scaleBand(): BandScale;
}

declare module "d3-shape" {
  /** For each part, the lower and the upper end of its piece of each pile. */
  type Piles = (readonly [lower: number, upper: number][])[];

  export function stack<Datum, Part>(): {
    keys(
      parts: readonly Part[],
    ): { value(valueOf: (datum: Datum, part: Part) => number): (data: readonly Datum[]) => Piles };
  };

  export function line<Datum>(): {
    x(of: (datum: Datum, index: number) => number): {
      y(of: (datum: Datum) => number): {
        /** Data without a value are gaps. */
        defined(isDefined: (datum: Datum) => boolean): (data: readonly Datum[]) => string | null;
      };
    };
  };
}
