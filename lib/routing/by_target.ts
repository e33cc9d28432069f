/** Keeps one value for each target. */
import type { TargetKey } from "./health.ts";

/** Names a target. Names of upstreams hold no slash. */
export function targetName(target: TargetKey): string {
  return `${target.upstream}/${targetModelName(target)}`;
}

/** Names the model of a target for operators, with its row where its health is kept apart. */
export function targetModelName({ model, row }: TargetKey): string {
  return row === undefined ? model : `${row}:${model}`;
}

/** One value for each target, made when it is first asked for. */
export class ByTarget<Kept> {
  readonly #make: (target: TargetKey) => Kept;
  readonly #kept = new Map<string, Kept>();
  /** The same by the objects, so that the name is made only once for each. */
  readonly #known = new WeakMap<TargetKey, Kept>();

  /** Starts empty. */
  constructor(make: (target: TargetKey) => Kept) {
    this.#make = make;
  }

  /** Returns the value of a target. */
  of(target: TargetKey): Kept {
    const known = this.#known.get(target);
    if (known !== undefined) return known;
    const name = targetName(target);
    const kept = this.#kept.get(name) ?? this.#make(target);
    this.#kept.set(name, kept);
    this.#known.set(target, kept);
    return kept;
  }

  /** Returns the value of a target that was asked for before. */
  find(target: TargetKey): Kept | undefined {
    return this.#known.get(target) ?? this.#kept.get(targetName(target));
  }

  /** Lists all values, the oldest first. */
  all(): Kept[] {
    return [...this.#kept.values()];
  }
}
