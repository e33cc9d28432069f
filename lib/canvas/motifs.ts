/** Small things that a prompt may name, drawn where a scene has room for them. */
import { mix, type Rgb, tintColor, TINTS } from "./color.ts";
import { disc, glow } from "./layers.ts";
import { blob, curve, ellipse, fill, type Paint, place, type Point, rectangle, stroke } from "./path.ts";
import { between } from "./random.ts";
import type { Stage } from "./stage.ts";
import type { Layer } from "./surface.ts";

/** Draws a thing of a size around a point. */
export type Motif = (stage: Stage, at: Point, size: number) => Layer[];

/** A sailing boat; the point is at its water line. */
export function sailboat({ palette, seed }: Stage, at: Point, size: number): Layer[] {
  const flip = seed % 2 === 0;
  const put = (points: Point[]) => place(points, { at, scale: size, flip });
  const hull = mix(palette.accents[0], palette.near, 0.45);
  const white = mix([1, 0.98, 0.94], palette.sky[2], 0.15);
  const sail = (points: Point[], color: Rgb): Layer =>
    fill(put(points), { from: color, to: mix(color, palette.near, 0.35), start: put([[0, -1.1]])[0] ?? at, end: at });
  return [
    fill(put(rectangle(-0.012, -1.2, { width: 0.024, height: 1.2 })), palette.near),
    sail([[0.03, -1.16], [0.03, -0.14], [0.56, -0.14], [0.4, -0.5], [0.2, -0.88]], white),
    sail([[-0.04, -1.02], [-0.04, -0.14], [-0.42, -0.14], [-0.26, -0.55]], mix(white, palette.accents[0], 0.75)),
    fill(put([[-0.52, -0.1], [0.6, -0.1], [0.44, 0.1], [-0.38, 0.1]]), hull),
    fill(put(ellipse([0, 0.15], { rx: 0.5, ry: 0.035 })), palette.near, 0.45),
  ];
}

/** Some birds far away. */
export function birds({ palette, random }: Stage, [x, y]: Point, size: number): Layer[] {
  return Array.from({ length: 5 }, () => {
    const at: Point = [x + between(random, -1.6, 1.6) * size, y + between(random, -0.7, 0.7) * size];
    const wing = size * between(random, 0.12, 0.24);
    const line = curve([[-1, -0.25], [-0.45, -0.42], [0, 0], [0.45, -0.42], [1, -0.25]]);
    return fill(
      stroke(place(line, { at, scale: wing, turns: between(random, -0.03, 0.03) }), wing * 0.17),
      palette.near,
      0.85,
    );
  });
}

/** A hot-air balloon, striped. */
export function balloon({ palette }: Stage, at: Point, size: number): Layer[] {
  const [first, second] = palette.accents;
  const layers: Layer[] = [];
  const [x, y] = at;
  const outline = (share: number): Point[] =>
    blob([
      [0, -1],
      [0.55 * share, -0.84],
      [0.74 * share, -0.4],
      [0.5 * share, 0.12],
      [0.16 * share, 0.44],
      [
        -0.16 * share,
        0.44,
      ],
      [-0.5 * share, 0.12],
      [-0.74 * share, -0.4],
      [-0.55 * share, -0.84],
    ]);
  for (const [i, share] of [1, 0.72, 0.44, 0.16].entries()) {
    const color = i % 2 === 0 ? first : mix(second, [1, 1, 1], 0.35);
    const paint: Paint = {
      from: mix(color, [1, 1, 1], 0.22),
      to: mix(color, [0, 0, 0.05], 0.4),
      start: [x - size * 0.6, y - size * 0.8],
      end: [x + size * 0.7, y + size * 0.2],
    };
    layers.push(fill(place(outline(share), { at, scale: size }), paint));
  }
  const rope = mix(palette.near, [0.2, 0.1, 0.05], 0.5);
  for (const side of [-1, 1]) {
    layers.push(
      fill(
        stroke([[x + side * size * 0.13, y + size * 0.43], [x + side * size * 0.09, y + size * 0.7]], size * 0.018),
        rope,
      ),
    );
  }
  layers.push(
    fill(
      rectangle(x - size * 0.12, y + size * 0.7, { width: size * 0.24, height: size * 0.19 }),
      mix(rope, [0.7, 0.45, 0.2], 0.5),
    ),
  );
  return layers;
}

/** A small house with lit windows; the point is at its foot. */
export function house({ palette }: Stage, at: Point, size: number): Layer[] {
  const put = (points: Point[]) => place(points, { at, scale: size });
  const wall = mix([0.93, 0.88, 0.8], palette.sky[1], 0.35);
  const lamp: Rgb = [1, 0.85, 0.45];
  return [
    fill(put(rectangle(-0.5, -0.5, { width: 1, height: 0.52 })), {
      from: wall,
      to: mix(wall, palette.near, 0.55),
      start: [at[0] - size / 2, 0],
      end: [at[0] + size / 2, 0],
    }),
    fill(put(rectangle(0.22, -0.98, { width: 0.13, height: 0.4 })), mix(wall, palette.near, 0.6)),
    fill(put([[-0.62, -0.48], [0, -1], [0.62, -0.48]]), mix(palette.accents[0], palette.near, 0.4)),
    fill(put(rectangle(-0.34, -0.36, { width: 0.18, height: 0.18 })), lamp),
    fill(put(rectangle(0.14, -0.36, { width: 0.18, height: 0.18 })), lamp),
    fill(put(rectangle(-0.08, -0.3, { width: 0.16, height: 0.31 })), mix(palette.near, [0.3, 0.15, 0.05], 0.5)),
    glow([at[0], at[1] - size * 0.27], {
      radius: size * 1.1,
      color: lamp,
      amount: palette.mood === "day" ? 0.05 : 0.3,
    }),
  ];
}

/** A lighthouse with its beam. */
export function lighthouse({ palette, width }: Stage, at: Point, size: number): Layer[] {
  const put = (points: Point[]) => place(points, { at, scale: size });
  const [x, y] = at;
  const beam: Rgb = mix([1, 0.95, 0.75], palette.light, 0.4);
  const red: Rgb = mix(palette.accents[0], [0.75, 0.16, 0.14], 0.4);
  const layers: Layer[] = [
    fill([[x, y - size * 1.08], [x - width, y - size * 1.5], [x - width, y - size * 0.8]], beam, 0.22),
    fill(put(blob([[-0.55, 0.1], [-0.35, -0.07], [0, -0.11], [0.4, -0.05], [0.6, 0.12]])), palette.near),
    fill(put([[-0.17, 0], [-0.1, -1], [0.1, -1], [0.17, 0]]), {
      from: [0.97, 0.95, 0.92],
      to: [0.55, 0.55, 0.62],
      start: [x - size * 0.17, y],
      end: [x + size * 0.17, y],
    }),
  ];
  for (const level of [0.16, 0.5, 0.8]) {
    const half = (share: number) => 0.17 - 0.07 * share;
    layers.push(
      fill(
        put([[-half(level), -level], [-half(level + 0.13), -level - 0.13], [half(level + 0.13), -level - 0.13], [
          half(level),
          -level,
        ]]),
        red,
      ),
    );
  }
  return [
    ...layers,
    fill(put(rectangle(-0.07, -1.15, { width: 0.14, height: 0.15 })), [1, 0.95, 0.7]),
    fill(put([[-0.11, -1.14], [0, -1.27], [0.11, -1.14]]), palette.near),
    glow([x, y - size * 1.08], { radius: size * 0.8, color: beam, amount: 0.8 }),
  ];
}

/** A rocket on its way up. */
export function rocket({ palette }: Stage, at: Point, size: number): Layer[] {
  const put = (points: Point[]) => place(points, { at, scale: size, turns: 0.06 });
  const metal: Paint = {
    from: [0.96, 0.96, 0.98],
    to: [0.5, 0.52, 0.6],
    start: [at[0] - size * 0.2, at[1]],
    end: [at[0] + size * 0.22, at[1]],
  };
  const [color] = palette.accents;
  return [
    glow(put([[0, 0.85]])[0] ?? at, { radius: size * 0.9, color: [1, 0.6, 0.2], amount: 0.8 }),
    fill(put(blob([[0, 0.42], [0.17, 0.7], [0, 1.25], [-0.17, 0.7]])), [1, 0.62, 0.15]),
    fill(put(blob([[0, 0.45], [0.09, 0.62], [0, 0.95], [-0.09, 0.62]])), [1, 0.93, 0.6]),
    fill(put([[-0.18, 0.1], [-0.42, 0.6], [-0.14, 0.46]]), color),
    fill(put([[0.18, 0.1], [0.42, 0.6], [0.14, 0.46]]), color),
    fill(
      put(blob([[0, -0.85], [0.2, -0.35], [0.2, 0.2], [0.13, 0.5], [-0.13, 0.5], [-0.2, 0.2], [-0.2, -0.35]])),
      metal,
    ),
    fill(put(blob([[0, -0.88], [0.16, -0.48], [0, -0.44], [-0.16, -0.48]])), color),
    disc(put([[0, -0.18]])[0] ?? at, { radius: size * 0.1, color: [0.3, 0.6, 0.85], dark: [0.05, 0.1, 0.25] }),
  ];
}

/** A heart. */
export function heart({ palette }: Stage, at: Point, size: number): Layer[] {
  const red = mix(palette.accents[0], tintColor({ hue: 20, chroma: 0.21, lightness: 0.56 }), 0.5);
  const outline = blob([
    [0, -0.32],
    [0.28, -0.62],
    [0.64, -0.52],
    [0.74, -0.16],
    [0.46, 0.3],
    [0.02, 0.72],
    [-0.02, 0.72],
    [-0.46, 0.3],
    [-0.74, -0.16],
    [-0.64, -0.52],
    [-0.28, -0.62],
  ]);
  return [
    fill(place(outline, { at: [at[0] + size * 0.04, at[1] + size * 0.06], scale: size }), [0, 0, 0.05], 0.25),
    fill(place(outline, { at, scale: size }), {
      from: mix(red, [1, 1, 1], 0.3),
      to: mix(red, [0.1, 0, 0.05], 0.35),
      start: [at[0] - size * 0.5, at[1] - size * 0.6],
      end: [at[0] + size * 0.3, at[1] + size * 0.7],
    }),
    fill(place(ellipse([-0.36, -0.32], { rx: 0.15, ry: 0.09 }), { at, scale: size, turns: -0.04 }), [1, 1, 1], 0.5),
  ];
}

/** A cat that sits and looks. */
export function cat({ palette, words }: Stage, at: Point, size: number): Layer[] {
  const put = (points: Point[]) => place(points, { at, scale: size });
  const named = [...words].map((word) => TINTS.get(word)).find((tint) => tint !== undefined);
  const fur = named === undefined ? mix(palette.near, [0.05, 0.04, 0.06], 0.5) : tintColor(named);
  const coat: Paint = {
    from: mix(fur, palette.light, 0.25),
    to: mix(fur, [0, 0, 0], 0.4),
    start: [at[0] - size * 0.4, at[1] - size],
    end: [at[0] + size * 0.4, at[1]],
  };
  const layers: Layer[] = [
    fill(stroke(put(curve([[0.3, -0.06], [0.62, -0.02], [0.72, -0.28], [0.6, -0.48]])), size * 0.11, size * 0.07), fur),
    fill(
      put(blob([[0, -0.72], [0.24, -0.5], [0.36, -0.16], [0.26, 0.01], [-0.26, 0.01], [-0.36, -0.16], [-0.24, -0.5]])),
      coat,
    ),
    fill(put([[-0.25, -0.8], [-0.24, -1.17], [-0.03, -0.96]]), fur),
    fill(put([[0.25, -0.8], [0.24, -1.17], [0.03, -0.96]]), fur),
    fill(put(ellipse([0, -0.78], { rx: 0.28, ry: 0.24 })), coat),
  ];
  for (const side of [-1, 1]) {
    layers.push(
      fill(put(ellipse([side * 0.11, -0.81], { rx: 0.06, ry: 0.065 })), mix(palette.light, [0.95, 0.85, 0.2], 0.6)),
    );
    layers.push(fill(put(ellipse([side * 0.11, -0.81], { rx: 0.018, ry: 0.058 })), [0.02, 0.02, 0.03]));
    for (const lean of [-0.03, 0.03]) {
      layers.push(
        fill(stroke(put([[side * 0.07, -0.69], [side * 0.4, -0.7 + lean]]), size * 0.008), [0.95, 0.95, 0.95], 0.6),
      );
    }
  }
  layers.push(fill(put([[-0.035, -0.725], [0.035, -0.725], [0, -0.69]]), [0.95, 0.6, 0.6]));
  return layers;
}

/** A fish. */
export function fish({ palette }: Stage, at: Point, size: number): Layer[] {
  const put = (points: Point[]) => place(points, { at, scale: size });
  const [color, second] = palette.accents;
  return [
    fill(put([[0.5, 0], [0.95, -0.34], [0.86, 0], [0.95, 0.34]]), second),
    fill(put(blob([[-0.72, 0.02], [-0.3, -0.32], [0.2, -0.26], [0.58, 0], [0.2, 0.26], [-0.3, 0.32]])), {
      from: mix(color, [1, 1, 1], 0.3),
      to: mix(color, [0, 0, 0.1], 0.35),
      start: [at[0], at[1] - size * 0.3],
      end: [at[0], at[1] + size * 0.35],
    }),
    fill(put(blob([[-0.05, -0.26], [0.2, -0.5], [0.36, -0.2]])), second),
    disc(put([[-0.44, -0.06]])[0] ?? at, { radius: size * 0.07, color: [1, 1, 1] }),
    disc(put([[-0.46, -0.06]])[0] ?? at, { radius: size * 0.035, color: [0.02, 0.02, 0.05] }),
  ];
}

/** A leafy tree; the point is at its foot. */
export function tree({ palette, random }: Stage, [x, y]: Point, size: number): Layer[] {
  const leaf = mix(palette.lit, palette.near, 0.35);
  const bark = mix(palette.near, [0.22, 0.12, 0.06], 0.5);
  const layers: Layer[] = [
    fill(
      stroke(
        curve([[x, y], [x + size * 0.02, y - size * 0.3], [x - size * 0.02, y - size * 0.7]]),
        size * 0.1,
        size * 0.04,
      ),
      bark,
    ),
    fill(stroke([[x, y - size * 0.38], [x + size * 0.2, y - size * 0.62]], size * 0.05, size * 0.02), bark),
    fill(stroke([[x, y - size * 0.42], [x - size * 0.2, y - size * 0.66]], size * 0.045, size * 0.02), bark),
  ];
  for (let i = 0; i < 26; i++) {
    const turn = i * 2.4, away = Math.sqrt(i / 26) * size * 0.34;
    const color = mix(leaf, i % 3 === 0 ? palette.accents[1] : palette.lit, random() * 0.35);
    layers.push(disc([x + Math.cos(turn) * away * 1.15, y - size * 0.78 + Math.sin(turn) * away * 0.85], {
      radius: size * between(random, 0.08, 0.15),
      color,
      dark: mix(color, [0, 0.02, 0.05], 0.55),
      soft: size * 0.02,
    }));
  }
  return layers;
}
