/** Parses the edits requested by the words of an instruction. */
import { type Tint, tintsIn } from "./color.ts";
import { readWords } from "./compose.ts";

/** One change. */
export type Edit =
  | { type: "gray" | "sepia" | "invert" | "blur" | "sharpen" | "pixelate" | "posterize" | "vignette" | "round" }
  | { type: "tint"; tint: Tint }
  | { type: "tone"; brightness?: number; contrast?: number; saturation?: number; warmth?: number }
  | { type: "border"; tint?: Tint }
  | { type: "text"; text: string };

/** The requested edits, in the order of application. */
export interface Instruction {
  /** Quarter turns clockwise. */
  turns: number;
  mirrored: boolean;
  upsideDown: boolean;
  edits: Edit[];
}

/** Longest text that is written on an image. */
const MAX_TEXT = 200;

const SIMPLE: readonly [Exclude<Edit, { tint?: Tint } | { text: string } | { type: "tone" }>["type"], RegExp][] = [
  ["gray", /\b(gr[ae]y ?scale|black[ -]and[ -]white|b&w|monochrome|desaturate|schwarzwei(ß|ss))/],
  ["sepia", /\b(sepia|vintage|old photo|antique|nostalgi)/],
  ["invert", /\b(invert|negative|inverse)/],
  ["posterize", /\b(poster|cartoon|comic|flat colou?rs)/],
  ["pixelate", /\b(pixel|mosaic|8-bit|retro game|censor)/],
  ["blur", /\b(blur|soften|out of focus|bokeh|smooth|unscharf)/],
  ["sharpen", /\b(sharpen|sharper|crisp|more detail)/],
  ["vignette", /\b(vignette|dark(en)? (the )?(edges|corners))/],
  ["round", /\b(round(ed)? corners|circle crop|in a circle)/],
];

const TONES: readonly [RegExp, Omit<Extract<Edit, { type: "tone" }>, "type">][] = [
  [/\b(bright|lighten|lighter|expose|daylight)/, { brightness: 0.4 }],
  [/\b(darken|darker|dim|at night|nighttime)/, { brightness: -0.45 }],
  [/\b(more contrast|contrast|dramatic|punch)/, { contrast: 1.4 }],
  [/\b(vivid|vibrant|saturate|colou?rful|pop)/, { saturation: 1.7 }],
  [/\b(muted|faded?|pale|washed)/, { saturation: 0.5, contrast: 0.85 }],
  [/\b(warm|sunset|golden hour|cozy|autumn)/, { warmth: 0.8 }],
  [/\b(cool|cold|winter|icy)/, { warmth: -0.8 }],
];

/** The colour of a border is near this word, not behind a `BREAK`. */
const BORDER = /\b(border|frame|framed|rahmen)\b/;
const BREAK = /[,.;]|\b(?:and|with|then|und|mit)\b/;

/** Parses an instruction. Without any known edit, the image gets a vignette and the instruction as a caption. */
export function readInstruction(prompt: string): Instruction {
  const text = prompt.slice(0, 4000);
  const quoted = [...text.matchAll(/["“”«»„]([^"“”«»„]{1,200})["“”«»„]|(?:^|\s)['‘]([^'’]{1,200})['’](?=[\s.,!?]|$)/g)]
    .map(([, double, single]) => (double ?? single ?? "").trim()).filter((found) => found !== "");
  // Quoted text is written on the image and contains no edits.
  let plain = text.toLowerCase();
  for (const words of quoted) plain = plain.replace(words.toLowerCase(), " ");
  const edits: Edit[] = [];
  for (const [type, pattern] of SIMPLE) if (pattern.test(plain)) edits.push({ type });
  for (const [pattern, values] of TONES) if (pattern.test(plain)) edits.push({ type: "tone", ...values });
  const border = BORDER.exec(plain);
  const before = border === null ? "" : plain.slice(0, border.index).split(BREAK).at(-1) ?? "";
  const after = border === null ? "" : plain.slice(border.index).split(BREAK)[0] ?? "";
  const frame = border === null ? undefined : tintsIn(readWords(`${before} ${after}`))[0];
  const isGray = edits.some(({ type }) => type === "gray");
  const tint = tintsIn(readWords(plain)).find((found) => found !== frame && !(isGray && found.chroma < 0.02));
  if (tint !== undefined) edits.unshift({ type: "tint", tint });
  const geometry = readGeometry(plain);
  const isMoved = geometry.turns !== 0 || geometry.mirrored || geometry.upsideDown;
  const words = quoted.join(" ").slice(0, MAX_TEXT);
  if (words !== "") edits.push({ type: "text", text: words });
  else if (edits.length === 0 && border === null && !isMoved && !/\b(resize|scale|crop|enlarge|shrink)/.test(plain)) {
    edits.push({ type: "tone", saturation: 1.25, contrast: 1.08 }, { type: "vignette" }, {
      type: "text",
      text: text.slice(0, MAX_TEXT),
    });
  }
  // The border comes last, so that nothing is painted over it.
  if (border !== null) edits.push({ type: "border", ...(frame !== undefined && { tint: frame }) });
  return { ...geometry, edits };
}

function readGeometry(plain: string): Omit<Instruction, "edits"> {
  const isHalf = /\b(180|upside[ -]down)/.test(plain);
  const isTurned = /\b(rotat|turn (it|the)|drehe?)/.test(plain);
  const isLeft = /\b(counter|anti|left|270)/.test(plain);
  const isFlip = /\b(flip|mirror|spiegel)/.test(plain);
  const isVertical = /\b(vertical|upside)/.test(plain);
  return {
    turns: isFlip ? 0 : isHalf ? 2 : isTurned ? (isLeft ? 3 : 1) : 0,
    mirrored: isFlip && !isVertical,
    upsideDown: isFlip && isVertical,
  };
}
