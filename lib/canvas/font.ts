/**
 * A stroke font: lines and arcs of a round pen, on a grid where capitals are 10 high, small letters 7, and the baseline
 * is 0. In `font.json`, a letter is its width and its strokes: `L` lists points; `A` is an arc: centre, radii, and two
 * angles in degrees, counter-clockwise from the right. Accents are centred on 0.
 */
import FONT from "./font.json" with { type: "json" };
import { arc, type Point } from "./path.ts";

/** A letter: its strokes, with y upwards. */
export interface Glyph {
  width: number;
  strokes: Point[][];
}

const LETTERS = new Map(Object.entries(FONT.letters));
const ACCENTS = new Map(Object.entries(FONT.marks));
/** Characters that are written with other characters. */
const SUBSTITUTES = new Map(Object.entries(FONT.spelled));

/** Total space on both sides of a letter. */
const BEARING = 2.3;

const glyphs = new Map<string, Glyph>();

/** Returns a text in the characters of this font, with white space as single spaces; other characters are left out. */
export function drawable(text: string): string {
  const substituted = [...text.normalize("NFC")].map((letter) => SUBSTITUTES.get(letter) ?? letter);
  return substituted.join("").replaceAll(/\s+/g, " ").split("").filter((letter) => glyph(letter) !== undefined).join("")
    .replaceAll(/ +/g, " ").trim();
}

/** Returns a letter of the font; `undefined` if the font lacks it. */
export function glyph(letter: string): Glyph | undefined {
  const cached = glyphs.get(letter);
  if (cached !== undefined) return cached;
  const built = buildGlyph(letter);
  if (built !== undefined) glyphs.set(letter, built);
  return built;
}

/** Builds a letter, with its accents if it has any. */
function buildGlyph(letter: string): Glyph | undefined {
  const shape = LETTERS.get(letter);
  if (shape !== undefined) return withBearing(parse(shape));
  const [base = "", ...marks] = [...letter.normalize("NFD")];
  const plain = LETTERS.get(base === "i" ? "ı" : base);
  if (plain === undefined || marks.length === 0) return undefined;
  const body = parse(plain);
  const strokes = [...body.strokes];
  for (const mark of marks) {
    const accent = ACCENTS.get(mark);
    if (accent === undefined) return undefined;
    // Cedilla and ogonek.
    const isBelow = mark === "\u0327" || mark === "\u0328";
    const baseHeight = /[A-Zbdfhkl]/.test(base) ? 10.9 : 7.9;
    const height = isBelow ? 0 : baseHeight;
    for (const points of parse(accent).strokes) {
      strokes.push(points.map(([x, y]): Point => [x + body.width / 2, y + height]));
    }
  }
  return withBearing({ width: body.width, strokes });
}

/** Adds the space on both sides. */
function withBearing({ width, strokes }: Glyph): Glyph {
  return {
    width: width + BEARING,
    strokes: strokes.map((points) => points.map(([x, y]): Point => [x + BEARING / 2, y])),
  };
}

/** Parses the text of a letter in `font.json`. */
function parse(shape: string): Glyph {
  const [width = "0", ...commands] = shape.split(/\s*(?=[LA])/);
  return {
    width: Number(width),
    strokes: commands.map((command) => {
      const numbers = command.slice(1).split(" ").map(Number);
      return command.startsWith("A") ? arcOf(numbers) : pairs(numbers);
    }),
  };
}

function pairs(numbers: readonly number[]): Point[] {
  const points: Point[] = [];
  for (let i = 0; i + 1 < numbers.length; i += 2) points.push([numbers[i] ?? 0, numbers[i + 1] ?? 0]);
  return points;
}

function arcOf([x = 0, y = 0, rx = 0, ry = 0, from = 0, to = 0]: readonly number[]): Point[] {
  const steps = Math.max(4, Math.ceil(Math.abs(to - from) / 9));
  return arc([x, y], { rx, ry, from: from / 360, to: to / 360, steps });
}
