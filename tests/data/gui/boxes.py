"""Makes boxes.ttf, the font of the window's tests: every letter is the same box, so that pictures
do not depend on a machine's fonts. Needs fontTools; run it where the file shall lie."""

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

UNITS, ADVANCE = 1000, 550


def box(width, height):
    pen = TTGlyphPen(None)
    pen.moveTo((75, 0))
    pen.lineTo((75, height))
    pen.lineTo((75 + width, height))
    pen.lineTo((75 + width, 0))
    pen.closePath()
    return pen.glyph()


letters = {code: "box" for code in (*range(0x21, 0x7F), *range(0xA1, 0x180), *range(0x2010, 0x2028),
                                    *range(0x2030, 0x205F), *range(0x2190, 0x2600), 0x394, 0x3BC)}
letters |= {code: "space" for code in (0x20, 0xA0, 0x2009, 0x202F)}
font = FontBuilder(UNITS, isTTF=True)
font.setupGlyphOrder([".notdef", "space", "box"])
font.setupCharacterMap(letters)
font.setupGlyf({".notdef": box(400, 500), "space": TTGlyphPen(None).glyph(), "box": box(400, 500)})
font.setupHorizontalMetrics({name: (ADVANCE, 75) for name in (".notdef", "space", "box")})
font.setupHorizontalHeader(ascent=800, descent=-200)
font.setupNameTable({"familyName": "Pipewright Boxes", "styleName": "Regular"})
font.setupOS2(sTypoAscender=800, sTypoDescender=-200, usWinAscent=800, usWinDescent=200)
font.setupPost()
font.font["head"].created = font.font["head"].modified = 0
font.font.recalcTimestamp = False
font.save("boxes.ttf")
