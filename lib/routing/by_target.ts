/** What is kept of each target. */
import type { Place } from "./health.ts";

/** The name of a target: names of upstreams hold no slash. */
export function nameOf(place: Place): string {
  return `${place.upstream}/${modelName(place)}`;
}

/** The model of a target, as operators read it: one that is kept apart by its row is named with it. */
export function modelName({ model, row }: Place): string {
  return row === undefined ? model : `${row}:${model}`;
}

/** Something for each target, made when it is first asked for. */
export class ByPlace<Kept> {
  readonly #make: (place: Place) => Kept;
  readonly #kept = new Map<string, Kept>();
  /** The same by the places themselves: a name is made only for the first request of each. */
  readonly #known = new WeakMap<Place, Kept>();

  /** Begins with none. */
  constructor(make: (place: Place) => Kept) {
    this.#make = make;
  }

  /** What is kept of a target. */
  of(place: Place): Kept {
    const known = this.#known.get(place);
    if (known !== undefined) return known;
    const name = nameOf(place);
    const kept = this.#kept.get(name) ?? this.#make(place);
    this.#kept.set(name, kept);
    this.#known.set(place, kept);
    return kept;
  }

  /** The same where it was asked for before; nothing is made. */
  find(place: Place): Kept | undefined {
    return this.#known.get(place) ?? this.#kept.get(nameOf(place));
  }

  /** All of it, what was asked for first before the rest. */
  all(): Kept[] {
    return [...this.#kept.values()];
  }
}
