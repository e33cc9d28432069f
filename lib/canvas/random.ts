/** Deterministic random numbers and noise from a seed. */

/** Returns the next random number, at least 0 and less than 1. */
export type Random = () => number;

/** Hashes a text to 32 bits; a small change of the text changes every bit. */
export function hashText(text: string): number {
  let hash = 0x9e3779b9;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x85ebca6b);
    hash ^= hash >>> 15;
  }
  return scramble(hash);
}

/** Mixes the bits of a 32-bit number. */
function scramble(value: number): number {
  let bits = Math.imul(value ^ value >>> 16, 0x7feb352d);
  bits = Math.imul(bits ^ bits >>> 15, 0x846ca68b);
  return (bits ^ bits >>> 16) >>> 0;
}

/** Returns a generator of the random numbers that belong to a seed. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = state + 0x9e3779b9 >>> 0;
    return scramble(state) / 2 ** 32;
  };
}

/** Returns a random number between two others. */
export function between(random: Random, low: number, high: number): number {
  return low + (high - low) * random();
}

/** Returns a random element of a list. */
export function pick<T>(random: Random, list: readonly [T, ...T[]]): T {
  return list[Math.floor(random() * list.length)] ?? list[0];
}

/** Returns the pseudo-random value of a lattice point, 0 to 1. */
export function lattice(x: number, y: number, seed: number): number {
  return scramble(Math.imul(x, 0x27d4eb2d) ^ Math.imul(y, 0x165667b1) ^ seed) / 2 ** 32;
}

/** Returns smooth two-dimensional noise, 0 to 1, with cells of size 1. */
export function noise(x: number, y: number, seed: number): number {
  const column = Math.floor(x), row = Math.floor(y);
  const u = ease(x - column), v = ease(y - row);
  const top = lattice(column, row, seed) * (1 - u) + lattice(column + 1, row, seed) * u;
  const bottom = lattice(column, row + 1, seed) * (1 - u) + lattice(column + 1, row + 1, seed) * u;
  return top * (1 - v) + bottom * v;
}

/** Returns noise of several octaves, each half as strong as the previous; 0 to 1, mostly about 0.5. */
export function fractal(x: number, y: number, { seed, octaves }: { seed: number; octaves: number }): number {
  let sum = 0, weight = 0.5, total = 0;
  for (let octave = 0; octave < octaves; octave++) {
    const scale = 2 ** octave;
    sum += weight * noise(x * scale, y * scale, seed + octave * 1013);
    total += weight;
    weight *= 0.5;
  }
  return sum / total;
}

/** Perlin's quintic fade curve, from 0 to 1. */
function ease(t: number): number {
  return t * t * t * (t * (t * 6 - 15) + 10);
}

/** Returns the nearest number from 0 to `high`. */
export function clamp(value: number, high = 1): number {
  return Math.min(high, Math.max(0, value));
}

/** Smoothstep: returns 0 up to `low`, 1 from `high`, and a smooth transition between. */
export function smooth(low: number, high: number, value: number): number {
  const t = clamp((value - low) / (high - low));
  return t * t * (3 - 2 * t);
}
