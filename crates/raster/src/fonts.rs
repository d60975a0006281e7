//! The fonts: four styles that the crate carries, a font of symbols, and those of the system for
//! what both lack or for what the user prefers.

use std::collections::HashMap;
use std::fmt;

use fontdb::{Database, Family, ID, Query, Stretch, Style, Weight};
use swash::{CacheKey, FontRef};

use crate::RasterError;

/// A font file of the system is not read beyond this.
const MAX_FONT: u64 = 64 << 20;

/// The family that the crate carries.
pub const FONT: &str = "DejaVu Sans Mono";

/// A font that is ready to draw.
pub(crate) struct Face {
    data: Data,
    offset: u32,
    key: CacheKey,
}

enum Data {
    Embedded(&'static [u8]),
    Read(Vec<u8>),
}

impl Face {
    fn embedded(data: &'static [u8]) -> Option<Self> {
        let FontRef { offset, key, .. } = FontRef::from_index(data, 0)?;
        Some(Self { data: Data::Embedded(data), offset, key })
    }

    fn read(db: &Database, id: ID) -> Option<Self> {
        let face = db.face(id)?;
        let (fontdb::Source::File(path) | fontdb::Source::SharedFile(path, _)) = &face.source else {
            return None;
        };
        if std::fs::metadata(path).ok()?.len() > MAX_FONT {
            return None;
        }
        let data = std::fs::read(path).ok()?;
        let FontRef { offset, key, .. } = FontRef::from_index(&data, face.index as usize)?;
        Some(Self { data: Data::Read(data), offset, key })
    }

    pub(crate) fn font(&self) -> FontRef<'_> {
        let data = match &self.data {
            Data::Embedded(data) => data,
            Data::Read(data) => data.as_slice(),
        };
        FontRef { data, offset: self.offset, key: self.key }
    }

    fn has(&self, ch: char) -> bool {
        self.font().charmap().map(ch) != 0
    }
}

/// Number of a face among [`Fonts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FaceId(usize);

/// All fonts that a picture may need.
pub(crate) struct Fonts {
    faces: Vec<Face>,
    /// By boldness and slant: regular, bold, italic, both.
    text: [FaceId; 4],
    symbols: FaceId,
    system: Option<System>,
}

impl fmt::Debug for Fonts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fonts({})", self.faces.len())
    }
}

/// The fonts of the system, which are listed when the first one is asked for.
struct System {
    database: Option<Listed>,
    loaded: HashMap<ID, Option<FaceId>>,
}

struct Listed {
    db: Database,
    /// All faces, the most fitting first. The order does not depend on that of the folders.
    order: Vec<ID>,
}

impl Listed {
    fn new() -> Self {
        let mut db = Database::new();
        db.load_system_fonts();
        let mut ranked: Vec<_> = db
            .faces()
            .filter(|face| face.style == Style::Normal && face.stretch == Stretch::Normal)
            .map(|face| {
                let family = face.families.first().map(|(name, _)| name.clone()).unwrap_or_default();
                let distance = face.weight.0.abs_diff(Weight::NORMAL.0);
                ((!face.monospaced, distance, family, face.post_script_name.clone(), face.index), face.id)
            })
            .collect();
        ranked.sort();
        Self { db, order: ranked.into_iter().map(|(_, id)| id).collect() }
    }

    fn is_emoji(&self, id: ID) -> bool {
        let name = self.db.face(id).and_then(|face| face.families.first());
        name.is_some_and(|(name, _)| name.contains("Emoji"))
    }
}

impl Fonts {
    /// The fonts of the crate, and those of the system if asked for. `family` names a font of the
    /// system for the text.
    pub(crate) fn new(family: Option<&str>, system: bool) -> Result<Self, RasterError> {
        let embedded = [
            dejavu::sans_mono::regular(),
            dejavu::sans_mono::bold(),
            dejavu::sans_mono::oblique(),
            dejavu::sans_mono::bold_oblique(),
            epaint_default_fonts::NOTO_EMOJI_REGULAR,
        ];
        let faces: Vec<_> = embedded.into_iter().filter_map(Face::embedded).collect();
        if faces.len() != embedded.len() {
            return Err(RasterError::Font(FONT.to_owned()));
        }
        let mut fonts = Self {
            faces,
            text: [FaceId(0), FaceId(1), FaceId(2), FaceId(3)],
            symbols: FaceId(4),
            system: system.then(|| System { database: None, loaded: HashMap::new() }),
        };
        if let Some(family) = family.filter(|family| !family.eq_ignore_ascii_case(FONT)) {
            fonts.choose(family)?;
        }
        Ok(fonts)
    }

    fn choose(&mut self, family: &str) -> Result<(), RasterError> {
        let listed = Listed::new();
        for (i, slot) in self.text.iter_mut().enumerate() {
            let query = Query {
                families: &[Family::Name(family)],
                weight: if i & 1 == 0 { Weight::NORMAL } else { Weight::BOLD },
                stretch: Stretch::Normal,
                style: if i & 2 == 0 { Style::Normal } else { Style::Italic },
            };
            let face = listed.db.query(&query).and_then(|id| Face::read(&listed.db, id));
            let face = face.ok_or_else(|| RasterError::Font(family.to_owned()))?;
            *slot = FaceId(self.faces.len());
            self.faces.push(face);
        }
        if let Some(system) = &mut self.system {
            system.database = Some(listed);
        }
        Ok(())
    }

    pub(crate) fn face(&self, id: FaceId) -> &Face {
        &self.faces[id.0]
    }

    /// The face of the text in a style: bit 0 bold, bit 1 italic.
    pub(crate) fn text(&self, style: usize) -> FaceId {
        self.text[style & 3]
    }

    /// The face that draws a cluster whose first character is `first`. `None` if no font has it.
    pub(crate) fn find(&mut self, first: char, emoji: bool, style: usize) -> Option<FaceId> {
        let text = self.text(style);
        let has = |fonts: &Self, id: FaceId| fonts.face(id).has(first);
        if !emoji {
            if has(self, text) {
                return Some(text);
            }
            // A font may lack a character in one style only.
            if has(self, self.text[0]) {
                return Some(self.text[0]);
            }
            if has(self, FaceId(style & 3)) {
                return Some(FaceId(style & 3));
            }
        }
        // A font with colours comes first, if the system has one.
        if emoji && let Some(id) = self.of_system(first, true) {
            return Some(id);
        }
        if has(self, self.symbols) {
            return Some(self.symbols);
        }
        self.of_system(first, false).or_else(|| has(self, text).then_some(text))
    }

    fn of_system(&mut self, ch: char, emoji: bool) -> Option<FaceId> {
        let system = self.system.as_mut()?;
        let listed = system.database.get_or_insert_with(Listed::new);
        let has = |id: ID| {
            let found = listed.db.with_face_data(id, |data, index| {
                FontRef::from_index(data, index as usize).is_some_and(|font| font.charmap().map(ch) != 0)
            });
            found.unwrap_or(false)
        };
        for id in listed.order.iter().copied().filter(|id| !emoji || listed.is_emoji(*id)) {
            if let Some(Some(face)) = system.loaded.get(&id) {
                if self.faces[face.0].has(ch) {
                    return Some(*face);
                }
                continue;
            }
            if system.loaded.contains_key(&id) || !has(id) {
                continue;
            }
            let face = Face::read(&listed.db, id).map(|face| {
                self.faces.push(face);
                FaceId(self.faces.len() - 1)
            });
            system.loaded.insert(id, face);
            if face.is_some() {
                return face;
            }
        }
        None
    }
}
