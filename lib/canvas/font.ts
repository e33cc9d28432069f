/**
 * A stroke font: lines and arcs of a round pen, on a grid where capitals are 10 high, small letters 7, and the baseline
 * is 0. `L` lists points; `A` is an arc: centre, radii, and two angles in degrees, counter-clockwise from the right.
 * The first number is the width.
 */
import type { Point } from "./path.ts";

/** A letter: its strokes, with y upwards. */
export interface Glyph {
  width: number;
  strokes: Point[][];
}

/** Letters, as "letter width strokes", separated by " § " and line ends. */
const SHAPE_TABLE = `
A 8 L0 0 4 10 8 0 L1.4 3.5 6.6 3.5
B 6.2 L3.5 5.2 0 5.2 L3.5 0 0 0 0 10 3.5 10 A3.5 7.6 2.4 2.4 90 -90 A3.5 2.6 2.7 2.6 90 -90
C 7.9 A4.8 5 4.8 5 50 310 § D 7.6 L2.8 0 0 0 0 10 2.8 10 A2.8 5 4.8 5 90 -90
E 5.8 L5.8 10 0 10 0 0 5.8 0 L0 5.2 4.9 5.2 § F 5.6 L5.6 10 0 10 0 0 L0 5.2 4.7 5.2
G 9.6 A4.8 5 4.8 5 48 355 L9.6 4.6 5.6 4.6 § H 7.4 L0 0 0 10 L7.4 0 7.4 10 L0 5.1 7.4 5.1 § I 0 L0 0 0 10
J 4.6 L4.6 10 4.6 2.4 A2.3 2.4 2.3 2.4 0 -170 § K 6.4 L0 0 0 10 L6.2 10 0 4 L2.2 6.1 6.6 0 § L 5.4 L0 10 0 0 5.4 0
M 9 L0 0 0 10 4.5 3 9 10 9 0 § N 7.4 L0 0 0 10 7.4 0 7.4 10 § O 9.6 A4.8 5 4.8 5 0 360
P 6.1 L0 0 0 10 3.4 10 A3.4 7.3 2.7 2.7 90 -90 L3.4 4.6 0 4.6 § Q 9.6 A4.8 5 4.8 5 0 360 L5.6 2.8 9.2 -0.6
R 6.4 L0 0 0 10 3.4 10 A3.4 7.3 2.7 2.7 90 -90 L3.4 4.6 0 4.6 L3.2 4.6 6.4 0
S 6 A3 7.5 2.6 2.5 25 270 A3 2.5 3 2.5 90 -155 § T 7 L0 10 7 10 L3.5 10 3.5 0
U 7.4 L0 10 0 3.7 A3.7 3.7 3.7 3.7 180 360 L7.4 3.7 7.4 10 § V 8 L0 10 4 0 8 10
W 11.6 L0 10 2.9 0 5.8 9 8.7 0 11.6 10 § X 7 L0 0 7 10 L0 10 7 0 § Y 7.2 L0 10 3.6 5 7.2 10 L3.6 5 3.6 0
Z 6.8 L0 10 6.8 10 0 0 6.8 0 § a 6.4 A3.2 3.5 3.2 3.5 0 360 L6.4 7 6.4 0 § b 6.4 A3.2 3.5 3.2 3.5 0 360 L0 10.4 0 0
c 5.5 A3.2 3.5 3.2 3.5 48 312 § d 6.4 A3.2 3.5 3.2 3.5 0 360 L6.4 10.4 6.4 0
e 6.4 L0 3.6 6.4 3.6 A3.2 3.5 3.2 3.5 2 318 § f 3.6 L1.6 0 1.6 8.4 A3.6 8.4 2 2 180 85 L0 6.8 3.4 6.8
g 6.4 A3.2 3.5 3.2 3.5 0 360 L6.4 7 6.4 -0.4 A3.2 -0.4 3.2 2.8 0 -150
h 5.8 L0 0 0 10.4 A2.9 4.1 2.9 2.9 180 0 L5.8 4.1 5.8 0 § i 0 L0 0 0 7 L0 9.5 0 9.7
j 1 L1 7 1 -1.2 A-0.8 -1.2 1.8 2 0 -80 L1 9.5 1 9.7 § k 5.3 L0 0 0 10.4 L4.9 7 0 2.6 L1.9 4.3 5.3 0 § l 0 L0 0 0 10.4
m 9.6 L0 0 0 7 A2.4 4.6 2.4 2.4 180 0 L4.8 4.6 4.8 0 A7.2 4.6 2.4 2.4 180 0 L9.6 4.6 9.6 0
n 5.8 L0 0 0 7 A2.9 4.1 2.9 2.9 180 0 L5.8 4.1 5.8 0 § o 6.6 A3.3 3.5 3.3 3.5 0 360
p 6.4 A3.2 3.5 3.2 3.5 0 360 L0 7 0 -3.2 § q 6.4 A3.2 3.5 3.2 3.5 0 360 L6.4 7 6.4 -3.2
r 3.4 L0 0 0 7 A2.9 4.1 2.9 2.9 180 80 § s 4.8 A2.4 5.25 2.1 1.75 25 270 A2.4 1.75 2.4 1.75 90 -155
t 3.5 L1.5 9.4 1.5 2 A3.3 2 1.8 2 180 275 L0 7 3.4 7 § u 5.8 L0 7 0 2.9 A2.9 2.9 2.9 2.9 180 360 L5.8 7 5.8 0
v 6 L0 7 3 0 6 7 § w 9 L0 7 2.3 0 4.5 6.4 6.7 0 9 7 § x 5.4 L0 0 5.4 7 L0 7 5.4 0
y 6 L0 7 3 0.2 L6 7 1.9 -3.2 0.5 -3.2 § z 5.2 L0 7 5.2 7 0 0 5.2 0 § 0 6.4 A3.2 5 3.2 5 0 360
1 2.8 L0 8 2.8 10 2.8 0 § 2 6.2 A3 7 3 3 170 -38 L5.36 5.15 0 0 6.2 0
3 5.9 A2.8 7.6 2.6 2.4 150 -90 A2.8 2.6 3.1 2.6 90 -150 § 4 6.8 L5 0 5 10 0 3 6.8 3
5 6 L5.6 10 1 10 0.5 5.4 A2.9 3.3 3.1 3.3 142 -140 § 6 6.2 A3.1 3.1 3.1 3.1 0 360 L0.3 4.4 4.4 10
7 6 L0 10 6 10 1.8 0 § 8 6 A3 7.5 2.5 2.5 0 360 A3 2.5 3 2.5 0 360 § 9 6.2 A3.1 6.9 3.1 3.1 0 360 L5.9 5.6 1.8 0
. 0 L0 0.1 0 0.3 § , 0.5 L0.5 0.3 0 -1.7 § : 0 L0 0.1 0 0.3 L0 6 0 6.2 § ; 0.5 L0.5 0.3 0 -1.7 L0.5 6 0.5 6.2
! 0 L0 10 0 3.2 L0 0.1 0 0.3 § ? 5 A2.5 7.6 2.5 2.4 165 -60 L3.75 5.5 2.5 4.3 2.5 3 L2.5 0.1 2.5 0.3
' 0 L0 10.4 0 8.2 § " 2 L0 10.4 0 8.2 L2 10.4 2 8.2 § \` 1.6 L0 10.4 1.6 8.8 § ( 2.2 A5 4.5 5 8 125 235
) 2.2 A-2.8 4.5 5 8 55 -55 § [ 1.8 L1.8 11 0 11 0 -2 1.8 -2 § ] 1.8 L0 11 1.8 11 1.8 -2 0 -2
{ 2.4 L2.4 11 1.2 10 1.2 6 0 4.5 1.2 3 1.2 -1 2.4 -2 § } 2.4 L0 11 1.2 10 1.2 6 2.4 4.5 1.2 3 1.2 -1 0 -2
- 3.4 L0 3.8 3.4 3.8 § – 5 L0 3.8 5 3.8 § — 8 L0 3.8 8 3.8 § _ 6 L0 -1.6 6 -1.6 § + 6 L0 4 6 4 L3 1 3 7
= 6 L0 5.2 6 5.2 L0 2.6 6 2.6 § / 4.4 L0 -1.4 4.4 11 § \\ 4.4 L0 11 4.4 -1.4 § | 0 L0 -2 0 11
* 4 L2 10 2 6 L0.3 9 3.7 7 L0.3 7 3.7 9
& 7 L7 0 1.5 6.9 A3 8.1 1.9 1.9 220 -50 L4.2 6.6 0.9 4 A2.7 2.4 2.7 2.4 140 310 L4.4 0.6 7 4
@ 10 A5 4.4 5 5 -50 -360 L10 4.4 10 3.6 A8.6 3.6 1.4 1.6 0 -180 L7.2 3.6 7.2 6.4 A5 4.4 2.2 2.3 0 360
# 7.2 L1 0 2.6 10 L4.6 0 6.2 10 L0 3.2 6.8 3.2 L0.4 6.8 7.2 6.8
$ 6 A3 7.5 2.6 2.5 25 270 A3 2.5 3 2.5 90 -155 L3 11.4 3 -1.4
% 8 L1.2 0 6.8 10 A1.7 8 1.7 2 0 360 A6.3 2 1.7 2 0 360 § < 5 L5 7.4 0 4 5 0.6 § > 5 L0 7.4 5 4 0 0.6
^ 4.4 L0 7.4 2.2 10 4.4 7.4 § ~ 6 A1.5 4 1.5 1 180 0 A4.5 4 1.5 1 180 360 § ¡ 0 L0 6.8 0 0 L0 9.7 0 9.9
¿ 5 A2.5 2.4 2.5 2.4 -15 -240 L1.25 4.5 2.5 5.7 2.5 7 L2.5 9.7 2.5 9.9 § « 5.6 L2.6 6 0 3.5 2.6 1 L5.6 6 3 3.5 5.6 1
» 5.6 L0 6 2.6 3.5 0 1 L3 6 5.6 3.5 3 1 § · 0 L0 4 0 4.2 § × 5 L0 1.5 5 6.5 L0 6.5 5 1.5
÷ 6 L0 4 6 4 L3 6.6 3 6.8 L3 1.3 3 1.5 § ± 6 L0 5 6 5 L3 2.4 3 7.6 L0 0.6 6 0.6 § ° 3 A1.5 8.7 1.5 1.5 0 360
£ 6 L0 0 6 0 L0.2 5 4.4 5 L1.6 0 1.6 7.4 A4 7.4 2.4 2.6 180 35 § € 7.4 A4.8 5 4.4 5 50 310 L0 6 5.6 6 L0 4 5.2 4
¥ 7.2 L0 10 3.6 5 7.2 10 L3.6 5 3.6 0 L1 4.4 6.2 4.4 L1 2.2 6.2 2.2
ß 5.8 L0 0 0 7.7 A2.5 7.7 2.5 2.6 180 -50 A2.9 2.8 2.9 2.8 75 -120 § Ø 9.6 A4.8 5 4.8 5 0 360 L1.2 -0.6 8.4 10.6
ø 6.6 A3.3 3.5 3.3 3.5 0 360 L0.5 -0.6 6.1 7.6 § ð 6.4 A3.2 3.3 3.2 3.3 0 360 L6.2 4.4 2.4 10.4 L1.6 8 5.4 9.6
Ð 7.6 L2.8 0 0 0 0 10 2.8 10 A2.8 5 4.8 5 90 -90 L-1 5.2 3.2 5.2 § þ 6.4 A3.2 3.5 3.2 3.5 0 360 L0 10.4 0 -3.2
Þ 6 L0 0 0 10 L0 7.8 3.4 7.8 A3.4 5.2 2.6 2.6 90 -90 L3.4 2.6 0 2.6 § ł 2 L1 0 1 10.4 L-0.2 4.4 2.2 6.4
Ł 5.4 L0 10 0 0 5.4 0 L-1.2 3.8 2.6 6.4 § ı 0 L0 0 0 7`;

const SHAPES: ReadonlyMap<string, string> = new Map([
  [" ", "1.6"],
  ...SHAPE_TABLE.trim().split(/ § |\n/).map((
    row,
  ): [string, string] => [row.slice(0, row.indexOf(" ")), row.slice(row.indexOf(" ") + 1)]),
]);

/** Accents, centred on 0; they stand at 0, the cedilla hangs from it. */
const MARKS: ReadonlyMap<string, string> = new Map([
  ["\u0300", "0 L-1.2 2 0.6 0.4"],
  ["\u0301", "0 L1.2 2 -0.6 0.4"],
  ["\u0302", "0 L-1.7 0.4 0 1.9 1.7 0.4"],
  ["\u0303", "0 A-0.9 1 0.9 0.7 180 0 A0.9 1 0.9 0.7 180 360"],
  ["\u0304", "0 L-1.6 1 1.6 1"],
  ["\u0306", "0 A0 2 1.6 1.5 200 340"],
  ["\u0307", "0 L0 1 0 1.2"],
  ["\u0308", "0 L-1.4 1 -1.4 1.2 L1.4 1 1.4 1.2"],
  ["\u030a", "0 A0 1.3 1.2 1.2 0 360"],
  ["\u030b", "0 L0 2 -1.4 0.4 L2.2 2 0.8 0.4"],
  ["\u030c", "0 L-1.7 1.9 0 0.4 1.7 1.9"],
  ["\u0327", "0 L0 0 0 -0.9 A-0.2 -1.9 1.1 1 75 -130"],
  ["\u0328", "0 A0.9 -1 1 1.2 130 320"],
]);

/** Characters written like others, each followed by its replacement. */
const SPELLED: ReadonlyMap<string, string> = new Map(
  'ÆAE æae ŒOE œoe ‘\' ’\' “" ”" „" …... ‐- ‑- −- •· ®(R) ©(C)'.split(" ").map((
    pair,
  ) => [pair.slice(0, 1), pair.slice(1)]),
);

/** Total space on both sides of a letter. */
const BEARING = 2.3;

const parsed = new Map<string, Glyph>();

/** The text in characters of this font, white space as single spaces; other characters are left out. */
export function drawable(text: string): string {
  const spelled = [...text.normalize("NFC")].map((letter) => SPELLED.get(letter) ?? letter);
  return spelled.join("").replaceAll(/\s+/g, " ").split("").filter((letter) => glyph(letter) !== undefined).join("")
    .replaceAll(/ +/g, " ").trim();
}

/** A letter of the font; `undefined` if the font lacks it. */
export function glyph(letter: string): Glyph | undefined {
  const known = parsed.get(letter);
  if (known !== undefined) return known;
  const made = make(letter);
  if (made !== undefined) parsed.set(letter, made);
  return made;
}

function make(letter: string): Glyph | undefined {
  const shape = SHAPES.get(letter);
  if (shape !== undefined) return withBearing(parse(shape));
  const [base = "", ...marks] = [...letter.normalize("NFD")];
  const plain = SHAPES.get(base === "i" ? "ı" : base);
  if (plain === undefined || marks.length === 0) return undefined;
  const body = parse(plain);
  const strokes = [...body.strokes];
  for (const mark of marks) {
    const accent = MARKS.get(mark);
    if (accent === undefined) return undefined;
    const isBelow = mark === "\u0327" || mark === "\u0328";
    const height = isBelow ? 0 : /[A-Zbdfhkl]/.test(base) ? 10.9 : 7.9;
    for (const points of parse(accent).strokes) {
      strokes.push(points.map(([x, y]): Point => [x + body.width / 2, y + height]));
    }
  }
  return withBearing({ width: body.width, strokes });
}

function withBearing({ width, strokes }: Glyph): Glyph {
  return {
    width: width + BEARING,
    strokes: strokes.map((points) => points.map(([x, y]): Point => [x + BEARING / 2, y])),
  };
}

function parse(shape: string): Glyph {
  const [width = "0", ...commands] = shape.split(/\s*(?=[LA])/);
  return {
    width: Number(width),
    strokes: commands.map((command) => {
      const numbers = command.slice(1).split(" ").map(Number);
      return command.startsWith("A") ? arc(numbers) : pairs(numbers);
    }),
  };
}

function pairs(numbers: readonly number[]): Point[] {
  const points: Point[] = [];
  for (let i = 0; i + 1 < numbers.length; i += 2) points.push([numbers[i] ?? 0, numbers[i + 1] ?? 0]);
  return points;
}

function arc([cx = 0, cy = 0, rx = 0, ry = 0, from = 0, to = 0]: readonly number[]): Point[] {
  const steps = Math.max(4, Math.ceil(Math.abs(to - from) / 9));
  return Array.from({ length: steps + 1 }, (_, i) => {
    const angle = (from + (to - from) * i / steps) * Math.PI / 180;
    return [cx + rx * Math.cos(angle), cy + ry * Math.sin(angle)];
  });
}
