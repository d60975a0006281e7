//! Colours of the views, in one place. Without colour, styles differ by bold, dim
//! and reverse.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use tapdeck_core::turns::AgentState;
use tapdeck_term::{Rgb, Theme};

/// The styles of the views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Styles {
    /// Whether colours may be used.
    pub colour: bool,
    /// The colours in place of the terminal's own.
    pub theme: Option<Theme>,
}

impl Styles {
    /// The styles for this environment, which respect `NO_COLOR`.
    pub fn from_env(theme: Option<Theme>) -> Self {
        Self { colour: std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()), theme }
    }

    /// Puts the colours of the theme, if there is one, in the place of the terminal's own: in all
    /// that has been drawn, the program's screen and the view around it.
    pub fn recolour(self, buf: &mut Buffer) {
        let Some(theme) = self.theme.filter(|_| self.colour) else { return };
        let to = |Rgb(r, g, b)| Color::Rgb(r, g, b);
        for cell in &mut buf.content {
            for (colour, default) in [(&mut cell.fg, theme.foreground), (&mut cell.bg, theme.background)] {
                match ansi_number(*colour) {
                    _ if *colour == Color::Reset => *colour = to(default),
                    Some(i) => *colour = to(theme.ansi[usize::from(i)]),
                    None => {}
                }
            }
        }
    }

    /// The colour of the cursor, where the terminal's own might not be seen.
    pub fn cursor(self) -> Option<Rgb> {
        self.theme.filter(|_| self.colour).map(|theme| theme.cursor)
    }

    fn pick(self, colour: Style, plain: Style) -> Style {
        if self.colour { colour } else { plain }
    }

    fn fg(self, colour: Color) -> Style {
        self.pick(Style::new().fg(colour), Style::new())
    }

    /// The border around a terminal.
    pub fn frame(self) -> Style {
        self.pick(Style::new().fg(Color::DarkGray), Style::new().add_modifier(Modifier::DIM))
    }

    /// The border around a terminal that takes the keys.
    pub fn frame_active(self) -> Style {
        self.fg(Color::Green).add_modifier(Modifier::BOLD)
    }

    /// The border around the chosen tile.
    pub fn frame_chosen(self) -> Style {
        self.fg(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// A title in a border.
    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The style of less important text.
    pub fn faint(self) -> Style {
        self.frame()
    }

    /// The status line.
    pub fn status(self) -> Style {
        self.pick(
            Style::new().fg(Color::Indexed(252)).bg(Color::Indexed(236)),
            Style::new().add_modifier(Modifier::REVERSED),
        )
    }

    /// The state at the left of the status line.
    pub fn badge(self, mood: Mood) -> Style {
        let colour = match mood {
            Mood::Calm => Color::Indexed(39),
            Mood::Going => Color::Indexed(71),
            Mood::Driving => Color::Indexed(208),
            Mood::Asking => Color::Indexed(178),
            Mood::Wrong => Color::Indexed(167),
        };
        self.pick(
            Style::new().fg(Color::Indexed(16)).bg(colour).add_modifier(Modifier::BOLD),
            Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
        )
    }

    /// The style of a program's state. One that waits for a person stands out.
    pub fn state(self, state: AgentState) -> Style {
        match state {
            AgentState::Working => self.fg(Color::Green),
            AgentState::Blocked => self.fg(Color::Yellow).add_modifier(Modifier::BOLD),
            AgentState::Idle => self.fg(Color::Cyan),
            AgentState::Done | AgentState::Unknown => self.faint(),
        }
    }

    /// A key in a hint.
    pub fn key(self) -> Style {
        self.pick(
            Style::new().fg(Color::Indexed(75)).bg(Color::Indexed(236)).add_modifier(Modifier::BOLD),
            Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
        )
    }

    /// A snapshot.
    pub fn snapshot(self) -> Style {
        self.fg(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// A marker.
    pub fn marker(self) -> Style {
        self.fg(Color::Cyan)
    }

    /// An instruction.
    pub fn instruction(self) -> Style {
        self.fg(Color::Magenta).add_modifier(Modifier::BOLD)
    }

    /// The part of a timeline that has passed.
    pub fn passed(self) -> Style {
        self.fg(Color::Indexed(39))
    }

    /// A match of the search.
    pub fn found(self) -> Style {
        self.pick(
            Style::new().fg(Color::Indexed(16)).bg(Color::Indexed(179)),
            Style::new().add_modifier(Modifier::UNDERLINED | Modifier::BOLD),
        )
    }

    /// The current match.
    pub fn found_now(self) -> Style {
        self.pick(
            Style::new().fg(Color::Indexed(16)).bg(Color::Indexed(214)).add_modifier(Modifier::BOLD),
            Style::new().add_modifier(Modifier::REVERSED | Modifier::UNDERLINED | Modifier::BOLD),
        )
    }
}

/// The number of an ANSI colour.
fn ansi_number(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        Color::Indexed(i @ 0..16) => i,
        _ => return None,
    })
}

/// The kind of the state at the left of the status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Nothing changes.
    Calm,
    /// It plays, or is live.
    Going,
    /// Keys go to the program.
    Driving,
    /// The viewer waits for an answer.
    Asking,
    /// Something failed.
    Wrong,
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn a_theme_takes_the_place_of_the_terminals_colours() {
        for (name, theme) in Theme::BUILT_IN {
            let styles = Styles { colour: true, theme: Some(*theme) };
            let mut buf = Buffer::empty(Rect::new(0, 0, 4, 1));
            buf[(1, 0)].set_fg(Color::Blue).set_bg(Color::Indexed(8));
            buf[(2, 0)].set_fg(Color::Indexed(208)).set_bg(Color::Rgb(1, 2, 3));
            buf[(3, 0)].set_fg(Color::White);
            styles.recolour(&mut buf);
            let to = |Rgb(r, g, b)| Color::Rgb(r, g, b);
            let look = |x: u16| (buf[(x, 0)].fg, buf[(x, 0)].bg);
            assert_eq!(look(0), (to(theme.foreground), to(theme.background)), "{name}");
            assert_eq!(look(1), (to(theme.ansi[4]), to(theme.ansi[8])), "{name}");
            assert_eq!(look(2), (Color::Indexed(208), Color::Rgb(1, 2, 3)), "{name}");
            assert_eq!(look(3).0, to(theme.ansi[15]), "{name}");
        }
        for plain in
            [Styles { colour: false, theme: Some(Theme::default()) }, Styles { colour: true, theme: None }]
        {
            let mut buf = Buffer::empty(Rect::new(0, 0, 1, 1));
            plain.recolour(&mut buf);
            assert_eq!((buf[(0, 0)].fg, buf[(0, 0)].bg), (Color::Reset, Color::Reset));
        }
    }
}
