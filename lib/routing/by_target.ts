/** What is kept of each target. */
import type { TargetKey } from "./health.ts";

/** The name of a target: names of upstreams hold no slash. */
export function targetName(place: TargetKey): string {
  return `${place.upstream}/${targetModelName(place)}`;
}

/** The model of a target, as operators read it: one that is kept apart by its row is named with it. */
export function targetModelName({ model, row }: TargetKey): string {
  return row === undefined ? model : `${row}:${model}`;
}

/** Something for each target, made when it is first asked for. */
export class ByTarget<Kept> {
  readonly #make: (place: TargetKey) => Kept;
  readonly #kept = new Map<string, Kept>();
  /** The same by the places themselves: a name is made only for the first request of each. */
  readonly #known = new WeakMap<TargetKey, Kept>();

  /** Begins with none. */
  constructor(make: (place: TargetKey) => Kept) {
    this.#make = make;
  }

  /** What is kept of a target. */
  of(place: TargetKey): Kept {
    const known = this.#known.get(place);
    if (known !== undefined) return known;
    const name = targetName(place);
    const kept = this.#kept.get(name) ?? this.#make(place);
    this.#kept.set(name, kept);
    this.#known.set(place, kept);
    return kept;
  }

  /** The same where it was asked for before; nothing is made. */
  find(place: TargetKey): Kept | undefined {
    return this.#known.get(place) ?? this.#kept.get(targetName(place));
  }

  /** All of it, what was asked for first before the rest. */
  all(): Kept[] {
    return [...this.#kept.values()];
  }
}
